--- Validates an object of a custom kind against its schema, with kube-apiserver's messages.
---
--- A schema is compiled once, to functions: check(value, run, depth, old) checks a value and reports errors to `run`
--- (run.lua). `old` is the stored value in the same place, or nil when it cannot be determined: a value that was
--- already wrong and has not changed is accepted.
--- `run.matches` counts the rules that matched, as upstream does: alternatives are compared by it.
---
--- Rules: kube-openapi/pkg/validation/validate, apiextensions-apiserver/pkg/apiserver/validation/{validation,
--- ratcheting}.go.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local logical_schemas = require "cluster.apiserver.schema.logical_schemas"
local new_run = require("cluster.apiserver.schema.run").new
local old_items = require "cluster.apiserver.schema.old_items"
local values = require "cluster.apiserver.schema.values"

local null, is_array, equal = host.json.null, host.json.is_array, host.json.equal
local math_type = math.type

-- Upstream joins the names of additional properties to a path even where the path is empty.
local ADDITIONAL = "."

local KINDS = { "string", "integer", "number", "boolean", "array", "object" }

-- Rules that look at values of a kind, beside those of the type: upstream counts each that looks, and lists and numbers
-- twice.
local LOOKS = { string = 1, integer = 2, number = 2, boolean = 0, array = 2, object = 1 }


local function kind_of(value)
  local kind = type(value)
  if kind == "number" then
    return math_type(value) == "integer" and "integer" or "number"
  elseif kind == "table" then
    return is_array(value) and "array" or "object"
  end
  return kind
end


-- Checks a part of the value at hand.
local function descend(check, value, run, depth, old)
  if old == nil then
    return check(value, run, depth)
  end
  local before = #run.errors
  check(value, run, depth, old)
  if #run.errors > before and equal(value, old) then
    for i = #run.errors, before + 1, -1 do
      run.errors[i] = nil
    end
  end
end


local function array_check(schema, compile)
  local items = schema.items and compile(schema.items)
  local least, most = schema.minItems, schema.maxItems
  return function(value, run, depth, old)
    local count = #value
    if items then
      local at, old_item = run.at, old_items(schema, old)
      for i = 1, count do
        if run:is_full() then
          break
        end
        at[depth + 1] = i - 1
        if old_item then
          descend(items, value[i], run, depth + 1, old_item(value[i]))
        else
          items(value[i], run, depth + 1)
        end
      end
    end
    if least and count < least then
      run:invalid(depth, count, ("should have at least %d items"):format(least))
    end
    if most and count > most then
      run:error(depth, field.too_many("", count, most))
    end
  end
end


local function count_keys(object)
  local count = 0
  for _ in pairs(object) do
    count = count + 1
  end
  return count
end


local function size_check(schema)
  local least, most = schema.minProperties, schema.maxProperties
  if not least and not most then
    return nil
  end
  return function(value, run, depth)
    local count = count_keys(value)
    if least and count < least then
      run:invalid(depth, count, ("should have at least %d properties"):format(least))
    end
    if most and count > most then
      run:error(depth, field.too_many("", count, most))
    end
  end
end


local function compile_properties(schema, compile)
  local checks = {}
  for name, property in pairs(schema.properties or {}) do
    checks[name] = compile(property)
  end
  return checks
end


local function object_check(schema, compile)
  local size, required = size_check(schema), schema.required
  local properties = compile_properties(schema, compile)
  local additional = type(schema.additionalProperties) == "table" and compile(schema.additionalProperties)
  local walks = next(properties) ~= nil or additional
  return function(value, run, depth, old)
    if size then
      size(value, run, depth)
    end
    local before = type(old) == "table" and old or nil
    if walks then
      local at = run.at
      for key, inner in run.each(value) do
        local check = properties[key] or additional
        if run:is_full() then
          break
        elseif check then
          at[depth + 1] = depth == 0 and not properties[key] and ADDITIONAL .. key or key
          if before then
            descend(check, inner, run, depth + 1, before[key])
          else
            check(inner, run, depth + 1)
          end
        end
      end
    end
    for i = 1, required and #required or 0 do
      if value[required[i]] == nil then
        run.at[depth + 1] = required[i]
        run:error(depth + 1, field.required("", ""))
      end
    end
  end
end


local MAKERS = {
  string = { values.string_check, values.format_check },
  integer = { values.number_check },
  number = { values.number_check },
  boolean = {},
  array = { array_check },
  object = {},
}


-- All checks of values of one kind, in upstream's order, and how many rules look at them.
local function checks_of(schema, kind, compile, shared)
  local checks, matches = {}, 3 + LOOKS[kind]
  local function add(check)
    checks[#checks + 1] = check
  end
  local typed = #values.types(schema) > 0 or values.format(schema) ~= nil
  local wrong = typed and values.type_check(schema, kind)
  matches = matches + (typed and 1 or 0) + (typed and not wrong and 1 or 0)
  add(wrong or nil)
  matches = matches + 1
  add(shared.logical_schemas)
  for _, make in ipairs(MAKERS[kind]) do
    add(make(schema, compile))
  end
  if kind == "string" and values.format_check(schema) then
    matches = matches + 1
  end
  add(shared.enum)
  add(kind == "object" and shared.object or nil)
  return checks, matches
end


-- One function for a list of checks.
local function sequence(checks, matches)
  local first, second = checks[1], checks[2]
  if not first then
    return function(_, run)
      run.matches = run.matches + matches
    end
  elseif not second then
    return function(value, run, depth, old)
      run.matches = run.matches + matches
      return first(value, run, depth, old)
    end
  end
  return function(value, run, depth, old)
    run.matches = run.matches + matches
    for i = 1, #checks do
      checks[i](value, run, depth, old)
    end
  end
end


local function null_sequence(schema, enum)
  local wrong = values.null_check(schema)
  return sequence({ wrong or enum, wrong and enum or nil }, wrong and 0 or 1)
end


-- The check of values of all kinds. Most values are of the kind that their schema wants: that is asked first.
local function dispatch(schema, by_kind, of_null)
  local function other(value, run, depth, old)
    if value == null then
      return of_null(value, run, depth)
    end
    return by_kind[kind_of(value)](value, run, depth, old)
  end
  local wanted = by_kind[schema.type]
  if schema.type == "string" or schema.type == "boolean" then
    local lua_type = schema.type
    return function(value, run, depth, old)
      if type(value) == lua_type then
        return wanted(value, run, depth, old)
      end
      return other(value, run, depth, old)
    end
  elseif schema.type == "integer" then
    return function(value, run, depth, old)
      if math_type(value) == "integer" then
        return wanted(value, run, depth, old)
      end
      return other(value, run, depth, old)
    end
  end
  return other
end


local compiled = setmetatable({}, { __mode = "k" })


local function compile(schema)
  local known = compiled[schema]
  if known then
    return known
  end
  local shared = {
    logical_schemas = logical_schemas.check(schema, compile),
    enum = values.enum_check(schema),
    object = object_check(schema, compile),
  }
  local by_kind = {}
  for _, kind in ipairs(KINDS) do
    by_kind[kind] = sequence(checks_of(schema, kind, compile, shared))
  end
  local check = dispatch(schema, by_kind, null_sequence(schema, shared.enum))
  compiled[schema] = check
  return check
end


-- Each error once, as upstream's results have them.
local function once(errors)
  local seen, list = {}, {}
  for _, err in ipairs(errors) do
    local key = ("%s %s %s"):format(err.path, err.type, err.detail)
    if not seen[key] then
      seen[key] = true
      list[#list + 1] = err
    end
  end
  return list
end


--- Validates a value.
--- @param schema table
--- @param value any  JSON value
--- @param options table|nil root: where the value stands in its object ("status"), nil when it is the object;
---   old: the value stored before, nil when there is none
--- @return table list of field errors, in the order of the objects' keys; empty when the value is valid
return function(schema, value, options)
  local check = compile(schema)
  local run = new_run(nil, false)
  check(value, run, 0)
  if #run.errors == 0 then
    return run.errors
  end
  run = new_run(options and options.root, true)
  descend(check, value, run, 0, options and options.old)
  return once(run.errors)
end
