--- Lists that are sets, and lists that are maps: no item may occur twice.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"

local is_array, null = host.json.is_array, host.json.null

-- Schema → function(value, path, errors), false when there are no such lists below.
local compiled = setmetatable({}, { __mode = "k" })
local compile


-- Indexes of items that stand there for the second time.
local function repeated(items)
  local seen, list = {}, {}
  for i, item in ipairs(items) do
    local kind = type(item)
    local key = kind == "table" and "t" .. host.json.encode(item) or kind == "string" and "s" .. item or item
    seen[key] = (seen[key] or 0) + 1
    if seen[key] == 2 then
      list[#list + 1] = i
    end
  end
  return list
end


local function at(path, i)
  return ("%s[%d]"):format(path, i - 1)
end


local function check_set(list, path, errors)
  local seen, usual = {}, true
  for i = 1, #list do
    local item = list[i]
    usual = usual and type(item) ~= "table" and not seen[item]
    seen[item] = true
  end
  if usual then
    return
  end
  for _, i in ipairs(repeated(list)) do
    errors[#errors + 1] = field.duplicate(at(path, i), list[i])
  end
end


-- True if all items are objects, and each has a different text or number at `key`: the usual case.
local function all_differ(list, key)
  local seen = {}
  for i = 1, #list do
    local item = list[i]
    local value = type(item) == "table" and item[key]
    if not value or value == null or type(value) == "table" or seen[value] then
      return false
    end
    seen[value] = true
  end
  return true
end


local function check_map(list, keys, path, errors)
  if #keys == 1 and all_differ(list, keys[1]) then
    return
  end
  local parts = {}
  for i, item in ipairs(list) do
    if item ~= null and (type(item) ~= "table" or is_array(item)) then
      errors[#errors + 1] = field.invalid(at(path, i), item, "must be an object for an array of list-type map")
      return
    end
    parts[i] = {}
    for _, key in ipairs(keys) do
      parts[i][key] = item ~= null and item[key] or nil
    end
  end
  for _, i in ipairs(repeated(parts)) do
    errors[#errors + 1] = field.duplicate(at(path, i), parts[i])
  end
end


local function array_check(schema, items)
  local kind, keys = schema["x-kubernetes-list-type"], schema["x-kubernetes-list-map-keys"] or {}
  return function(list, path, errors)
    if #list > 1 and kind == "set" then
      check_set(list, path, errors)
    elseif kind == "map" then
      check_map(list, keys, path, errors)
    end
    for i = 1, items and #list or 0 do
      if type(list[i]) == "table" then
        items(list[i], at(path, i), errors)
      end
    end
  end
end


local function object_check(parts, additional)
  local names = gofmt.sorted_keys(parts)
  return function(object, path, errors)
    for i = 1, #names do
      local name = names[i]
      local value = object[name]
      if type(value) == "table" then
        parts[name](value, path == "" and name or path .. "." .. name, errors)
      end
    end
    for _, key in ipairs(additional and gofmt.sorted_keys(object) or {}) do
      if not parts[key] and type(object[key]) == "table" then
        additional(object[key], ("%s[%s]"):format(path, key), errors)
      end
    end
  end
end


function compile(schema)
  local known = compiled[schema]
  if known ~= nil then
    return known
  end
  local parts, rest = {}, schema.additionalProperties
  for name, property in pairs(schema.properties or {}) do
    parts[name] = compile(property) or nil
  end
  local additional = type(rest) == "table" and compile(rest)
  local items = schema.items and compile(schema.items)
  local kind = schema["x-kubernetes-list-type"]
  known = false
  if items or kind == "set" or kind == "map" then
    known = array_check(schema, items)
  elseif next(parts) or additional then
    known = object_check(parts, additional)
  end
  if known then
    local check, wants_array = known, schema.type == "array"
    known = function(value, path, errors)
      if is_array(value) == wants_array then
        return check(value, path, errors)
      end
    end
  end
  compiled[schema] = known
  return known
end


--- Items that stand twice where they may not. @return table list of field errors
return function(schema, object)
  local check, errors = compile(schema), {}
  if check then
    check(object, "", errors)
  end
  return errors
end
