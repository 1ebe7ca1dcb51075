--- Checks that an applied configuration has the shape that its type allows.
--- Rules: structured-merge-diff typed/validate.go and typed/helpers.go.
local element = require "cluster.apiserver.apply.element"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local status = require "cluster.apiserver.status"
local types = require "cluster.apiserver.apply.types"

local json = host.json
local null = json.null

local M = {}

local visit


-- Of more errors than are told the rest need not be looked for.
local function is_full(errors)
  return #errors >= status.ERRORS_MAX
end


local function report(errors, path, message)
  errors[#errors + 1] = path == "" and message or path .. ": " .. message
end


-- Checks a value where a scalar is wanted. Returns a message, or nil if it is right.
local function scalar_problem(scalar, value)
  if value == null then
    return nil
  elseif scalar == "numeric" then
    local name = ({ string = "string", boolean = "bool" })[type(value)]
    name = name or (type(value) == "table" and (json.is_array(value) and "[]interface {}" or "map[string]interface {}"))
    return name and "expected numeric (int or float), got " .. name
  elseif scalar == "string" then
    local go_text = type(value) ~= "string" and gofmt.syntax(value)
    return go_text and "expected string, got &value.valueUnstructured{Value:" .. go_text .. "}"
  elseif scalar == "boolean" then
    return type(value) ~= "boolean" and "expected boolean, got &{" .. gofmt.plain(value) .. "}"
  end
  return type(value) == "table" and "expected any scalar, got &{" .. gofmt.plain(value) .. "}"
end


local function visit_list(list, items, path, errors)
  local seen = {}
  for i, item in ipairs(items) do
    local key = "i:" .. i - 1
    if is_full(errors) then
      return
    elseif not list.atomic then
      local message
      key, message = element.of_item(list, item)
      if not key then
        report(errors, path, ("element %d: %s"):format(i - 1, message))
        return
      elseif seen[key] then
        report(errors, path, "duplicate entries for key " .. element.show(key))
      end
      seen[key] = true
    end
    visit(list.element, item, path .. element.show(key), errors)
  end
end


local function visit_map(map, object, path, errors)
  for _, name in ipairs(gofmt.sorted_keys(object)) do
    local kind = map.fields[name] or map.element
    if not kind then
      report(errors, path .. "." .. name, "field not declared in schema")
      return
    elseif is_full(errors) then
      return
    end
    visit(kind, object[name], path .. "." .. name, errors)
  end
end


function visit(kind, value, path, errors)
  local shape = type(value) == "table" and (json.is_array(value) and "list" or "map") or "scalar"
  if value ~= null and shape == "map" and kind.map then
    visit_map(kind.map, value, path, errors)
  elseif value ~= null and shape == "list" and kind.list then
    visit_list(kind.list, value, path, errors)
  elseif kind.map and (value == null or shape ~= "scalar" or not kind.scalar) then
    if value ~= null then
      report(errors, path, "expected map, got &{" .. gofmt.plain(value) .. "}")
    end
  elseif kind.scalar then
    local problem = scalar_problem(kind.scalar, value)
    if problem then
      report(errors, path, problem)
    end
  elseif value ~= null then
    report(errors, path, "expected list, got &{" .. gofmt.plain(value) .. "}")
  end
end


local fits


local function list_fits(list, items)
  for _, item in ipairs(items) do
    if not list.atomic and not element.of_item(list, item) or not fits(list.element, item) then
      return false
    end
  end
  return true
end


local function map_fits(map, object)
  for name, value in pairs(object) do
    local kind = map.fields[name] or map.element
    if not kind or not fits(kind, value) then
      return false
    end
  end
  return true
end


function fits(kind, value)
  if value == null or kind == types.ATOMIC or kind == types.DEDUCED then
    return true
  elseif type(value) ~= "table" then
    return kind.scalar ~= nil and not scalar_problem(kind.scalar, value)
  elseif json.is_array(value) then
    return kind.list ~= nil and list_fits(kind.list, value)
  end
  return kind.map ~= nil and map_fits(kind.map, value)
end


--- Returns true if `value` has the shape of the type `kind`. A list may have several items with the same key, because
--- lists of stored objects may.
M.fits = fits


--- Returns the errors of `object` against the type `kind` as one text, or nil.
function M.problem(kind, object)
  local errors = {}
  visit(kind, object, "", errors)
  if #errors == 0 then
    return nil
  elseif #errors == 1 then
    return errors[1]
  end
  return "errors:\n  " .. table.concat(errors, "\n  ")
end


return M
