--- Converts an object of a built-in kind to the form that decoding into its Go type and encoding again would give.
---
--- null and empty fields are removed where the type says omitempty; structs that are not pointers, and fields that are
--- always written, are added; quantities and instants get their canonical form. The object has been checked against
--- the schema before, so its values have the right JSON types.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"
local notation = require "cluster.apiserver.schema.notation"
local quantity = require "cluster.quantity"

local null, array = host.json.null, host.json.array

local M = {}

local META = notation.packages.meta.name .. "."
local ZERO = { string = "", integer = 0, boolean = false, number = 0 }
local SPECIAL = { Quantity = true, IntOrString = true, RawExtension = true }
local TIMES = { [META .. "Time"] = true, [META .. "MicroTime"] = true }

-- Lists that the schema requires, and that the rules of their kinds let be missing. A null in any other required list
-- is refused.
local MAY_BE_MISSING = {
  ClusterRole = { rules = true }, ContainerImage = { names = true }, EndpointSlice = { endpoints = true, ports = true },
  LimitRangeSpec = { limits = true }, CSINodeSpec = { drivers = true },
  Role = { rules = true },
}

-- Lists for which the rules of their kinds tell an empty list from a missing one. These rules make sure that an empty
-- one is never stored: they refuse the object, or take the list out.
local KEPT_EMPTY = {
  HPAScalingRules = { policies = true }, ScopedResourceSelectorRequirement = { values = true },
}

local converters = {}   -- full name of a definition -> function(value) -> value


local function is_among(set, record, field)
  local fields = set[record.name]
  return fields ~= nil and fields[field.name] == true
end


-- True if a missing list is written as null.
local function may_be_null(record, field)
  return field.written and (not field.required or is_among(MAY_BE_MISSING, record, field))
end


local function keep(value)
  if value == null then
    return nil
  end
  return value
end


-- Bytes are read leniently and written on one line.
local function bytes(value)
  if value == null then
    return ""
  elseif value:find("[\r\n]") then
    return host.base64.encode(host.base64.decode((value:gsub("[\r\n]", ""))) or "")
  end
  return value
end


local function scalar_or(zero)
  return function(value)
    if value == null then
      return zero
    end
    return value
  end
end


local function unless(zero)
  return function(value)
    if value == null or value == zero then
      return nil
    end
    return value
  end
end


-- `none` is what stands for nothing, beside null. `convert` changes other values, when it is given.
local function with_default(default, none, convert)
  return function(value)
    if value == null or value == none then
      return default
    end
    return convert and convert(value) or value
  end
end


local convert_type


-- Converts the items of a list. null becomes `empty`. A list without items becomes nil; but if `empty` is given or
-- `keeps` is true, it stays a list.
local function list_of(item, empty, keeps)
  return function(value)
    if value == null or #value == 0 and empty == nil and not keeps then
      return empty
    end
    if item then
      for i = 1, #value do
        value[i] = item(value[i])
      end
    end
    return host.json.is_array(value) and value or array(value)
  end
end


local function map_of(item)
  return function(value)
    if value == null or next(value) == nil then
      return nil
    end
    for key, inner in pairs(value) do
      value[key] = item(inner)
    end
    return value
  end
end


-- Among items that may be anything null is one of them.
local function anything(value)
  return value
end


local function item_of(kind)
  local record = kind.ref and builtin.record(kind.ref)
  if kind.format == "byte" then
    return bytes
  elseif record and record.plain == "any" then
    return anything
  elseif kind.ref == notation.words.Quantity then
    return with_default("0", null, quantity.canonical)
  elseif kind.ref and builtin.is_struct(kind.ref) then
    local convert = convert_type(kind)
    return function(value)
      return convert(value == null and {} or value)
    end
  elseif kind.ref or kind.list or kind.map then
    return convert_type(kind)
  end
  return scalar_or(ZERO[kind.type])
end


local function special(word)
  if word == "Quantity" then
    return function(value)
      return value ~= null and quantity.canonical(value) or nil
    end
  end
  return keep
end


local function definition_of(name)
  local word = name:match("[^.]+$")
  if SPECIAL[word] then
    return special(word)
  end
  local record = builtin.record(name)
  if word == "Time" or word == "MicroTime" then
    return word == "Time" and instant.seconds or instant.micro
  elseif record.plain then
    return keep
  end
  return function(value)
    return M.of(name)(value)
  end
end


function convert_type(kind, empty, keeps)
  if kind.list then
    return list_of(item_of(kind.list), empty, keeps)
  elseif kind.map then
    return map_of(item_of(kind.map))
  elseif kind.ref then
    return definition_of(kind.ref)
  elseif kind.format == "byte" then
    return function(value)
      return value ~= null and value ~= "" and bytes(value) or nil
    end
  end
  return keep
end


-- How a scalar field is converted, and its value when it is not given.
local function scalar_rule(field)
  local zero = ZERO[field.type.type]
  if field.default ~= nil and (field.pointer or field.default ~= zero) then
    return with_default(field.default, not field.pointer and zero or null), field.default
  elseif field.pointer and field.written and not field.required then
    return scalar_or(null), null
  elseif field.pointer or zero == nil then
    return keep
  elseif field.written then
    return scalar_or(zero), zero
  end
  return unless(zero)
end


-- An instant that is no pointer is null when it is not set.
local function instant_rule(field)
  local convert = convert_type(field.type)
  if field.pointer or field.omitzero then
    return convert
  end
  return function(value)
    return convert(value) or null
  end, null
end


-- How a field is converted, and its value when it is not given: a scalar, null, or a function that makes a struct.
local function field_rule(record, field)
  local kind = field.type
  if TIMES[kind.ref] then
    return instant_rule(field)
  elseif kind.ref == notation.words.IntOrString and field.required then
    return scalar_or(0), 0
  elseif kind.ref == notation.words.Quantity and not field.pointer then
    return with_default("0", null, quantity.canonical), "0"
  elseif not (kind.ref or kind.list or kind.map) and kind.format ~= "byte" then
    return scalar_rule(field)
  elseif kind.list or kind.map then
    local empty = may_be_null(record, field) and null or nil
    return convert_type(kind, empty, is_among(KEPT_EMPTY, record, field)), empty
  end
  local convert = convert_type(kind)
  if kind.ref and not field.pointer and builtin.is_struct(kind.ref) then
    return function(value)
      return convert(value == null and {} or value)
    end, function()
      return convert {}
    end
  end
  return convert
end


local function compile(name)
  local record = builtin.record(name)
  local rules, missing = {}, {}
  for _, field in ipairs(record.fields) do
    local convert, default = field_rule(record, field)
    rules[field.name] = convert
    if default ~= nil then
      missing[#missing + 1] = { name = field.name, value = default, make = type(default) == "function" and default }
    end
  end
  return function(value)
    if value == null then
      return nil
    end
    for key, inner in pairs(value) do
      local rule = rules[key]
      if rule then
        value[key] = rule(inner)
      end
    end
    for i = 1, #missing do
      local field = missing[i]
      if value[field.name] == nil then
        value[field.name] = field.make and field.make() or field.value
      end
    end
    return value
  end
end


--- The conversion for the definition of that full name: convert(object) -> object, changed in place.
function M.of(name)
  local convert = converters[name]
  if not convert then
    convert = compile(name)
    converters[name] = convert
  end
  return convert
end


return M
