--- The values that expressions compute with.
---
--- int is a Lua integer, double a float, bool a boolean, string a text in UTF-8, null JSON's null, a type itself
--- (types.lua). The others are tables whose `tag` tells them apart: uint, bytes, timestamp, duration, list, map,
--- object, optional_type, and the abstract types of the libraries. A value never changes.
---
--- Lists, maps and objects that come from JSON hold it as it is, and convert an element when it is read: `convert`.
local host = require "cluster.host"
local types = require "cluster.cel.types"

local M = {}

M.null = host.json.null


local function class(tag)
  local new = { tag = tag }
  new.__index = new
  return new
end


local Uint, Bytes, Timestamp, Duration = class "uint", class "bytes", class "timestamp", class "duration"
local List, Map, Object, Optional = class "list", class "map", class "object", class "optional_type"

M.class = class


-- Uints that fit no int are keys of maps: the same one each time.
local large = setmetatable({}, { __mode = "v" })


--- @param bits integer of an unsigned integer of 64 bits
function M.uint(bits)
  if bits >= 0 then
    return setmetatable({ bits = bits }, Uint)
  end
  local value = large[bits]
  if not value then
    value = setmetatable({ bits = bits }, Uint)
    large[bits] = value
  end
  return value
end


function M.bytes(text)
  return setmetatable({ text = text }, Bytes)
end


--- @param seconds integer since 1970
--- @param nanos integer 0 to 999999999
function M.timestamp(seconds, nanos)
  return setmetatable({ seconds = seconds, nanos = nanos }, Timestamp)
end


function M.duration(nanos)
  return setmetatable({ nanos = nanos }, Duration)
end


--- @param items table an array, which the list keeps
--- @param convert function|nil makes a value of an item
function M.list(items, convert)
  return setmetatable({ items = items, convert = convert }, List)
end


--- The key of a map as Lua's tables have it: numbers that are equal are the same key. nil for what is no key.
function M.key(value)
  local kind = type(value)
  if kind == "string" or kind == "boolean" then
    return value
  elseif kind == "number" then
    return value == value and value or nil
  elseif kind == "table" and value.tag == "uint" then
    return value.bits >= 0 and value.bits or value
  end
  return nil
end


--- A map of computed values. @param keys table their keys, in order @param items table M.key(key) → value
function M.map(keys, items)
  return setmetatable({ keys = keys, items = items }, Map)
end


--- A map from a JSON object.
function M.json_map(object, convert)
  return setmetatable({ items = object, convert = convert }, Map)
end


--- An object from a JSON object.
--- @param object table
--- @param type table of types.object
--- @param convert function (name, item) → value
function M.object(object, type, convert)
  return setmetatable({ items = object, type = type, convert = convert }, Object)
end


local function as_it_is(_, value)
  return value
end


--- An object that an expression makes. @param fields table name → value
function M.computed_object(fields, type)
  return setmetatable({ items = fields, type = type, convert = as_it_is, is_computed = true }, Object)
end


M.none = setmetatable({}, Optional)


--- @param value any
function M.optional(value)
  return setmetatable({ value = value }, Optional)
end


--- The keys of a map, in their order; of one that is from JSON, sorted.
function M.keys(map)
  local keys = map.keys
  if not keys then
    keys = {}
    for name in pairs(map.items) do
      keys[#keys + 1] = name
    end
    table.sort(keys)
    map.keys = keys
  end
  return keys
end


--- An element of a list, counted from 1.
function M.element(list, index)
  local item = list.items[index]
  local convert = list.convert
  if convert and item ~= nil then
    return convert(item)
  end
  return item
end


--- The value of a key of a map, or nil.
function M.lookup(map, key)
  key = M.key(key)
  if key == nil then
    return nil
  end
  local item = map.items[key]
  local convert = map.convert
  if convert and item ~= nil then
    return convert(item)
  end
  return item
end


--- All elements of a list, converted. The table must not be changed. Raises { unfit = message } for one that does not
--- fit its type.
function M.elements(list)
  local convert = list.convert
  if not convert then
    return list.items
  end
  local elements = {}
  for i, item in ipairs(list.items) do
    local element, message = convert(item)
    if element == nil then
      error({ unfit = message }, 0)
    end
    elements[i] = element
  end
  return elements
end


local PLAIN = { boolean = "bool", string = "string", userdata = "null" }


--- The kind of a value: "int", "list", …
function M.tag(value)
  local kind = type(value)
  if kind == "table" then
    return value.tag
  elseif kind == "number" then
    return math.type(value) == "integer" and "int" or "double"
  end
  return PLAIN[kind]
end


local TYPES = {
  bool = types.bool, string = types.string, int = types.int, double = types.double, null = types.null,
  uint = types.uint, bytes = types.bytes, timestamp = types.timestamp, duration = types.duration,
  list = types.list(types.dyn), map = types.map(types.dyn, types.dyn), type = types.type,
  optional_type = types.optional(types.dyn),
}


--- The type of a value, without what is only known of a checked expression: that of [1] is `list`.
function M.type(value)
  return TYPES[M.tag(value)] or value.type
end


--- The name of the type of a value.
function M.type_name(value)
  return M.type(value).name
end


local function utf8_size(text)
  return utf8.len(text, 1, -1, true) or #text
end


--- Characters, bytes or elements; nil for what has no size.
function M.size(value)
  if type(value) == "string" then
    return utf8_size(value)
  end
  local tag = M.tag(value)
  if tag == "list" then
    return #value.items
  elseif tag == "map" then
    return value.keys and #value.keys or #M.keys(value)
  elseif tag == "bytes" then
    return #value.text
  end
  return nil
end


return M
