--- Values from JSON, and JSON from values.
---
--- A schema's type says how JSON is read: a text may be a timestamp, an integer a double. Nothing is copied: elements
--- are converted when an expression reads them.
local host = require "cluster.host"
local times = require "cluster.cel.times"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"
local read_words = require "cluster.cel.words"

local M = {}

local null = host.json.null

local from_dyn

local NULL = "invalid data, got null for schema with nullable=false"


-- As Go names what a JSON value is.
local function go_type(item)
  local kind = type(item)
  if kind == "table" then
    return host.json.is_array(item) and "[]interface {}" or "map[string]interface {}"
  elseif kind == "number" then
    return math.type(item) == "integer" and "int64" or "float64"
  end
  return kind == "boolean" and "bool" or kind
end


-- Each: the value, or nil and a message. The JSON value is not null.

local function expected(what, item)
  return nil, ("invalid data, expected %s, got %s"):format(what, go_type(item))
end


-- Types whose JSON is a text that is read.
local function of_text(read)
  return function(item)
    if type(item) ~= "string" then
      return expected("string", item)
    end
    return read(item)
  end
end


local function read_timestamp(text)
  if text:find "^%d%d%d%d%-%d%d%-%d%d$" then -- format: date
    text = text .. "T00:00:00Z"
  end
  local timestamp, message = times.read_timestamp((text:gsub("([+-]%d%d)(%d%d)$", "%1:%2")))
  if not timestamp then
    return nil, message or ("Invalid date-time formatted string %s"):format(text)
  end
  return timestamp
end


local function read_duration(text)
  local nanos = times.read_duration(text) or read_words(text)
  if not nanos then
    return nil, ("Invalid duration %s"):format(text)
  end
  return values.duration(nanos)
end


local function read_bytes(text)
  local bytes = host.base64.decode(text)
  if not bytes then
    return nil, ("Invalid byte formatted string %s"):format(text)
  end
  return values.bytes(bytes)
end


local SCALAR = {
  string = function(item)
    if type(item) ~= "string" then
      return expected("string", item)
    end
    return item
  end,
  bool = function(item)
    if type(item) ~= "boolean" then
      return expected("bool", item)
    end
    return item
  end,
  int = function(item)
    local integer = math.tointeger(item)
    if not integer or type(item) ~= "number" then
      return expected("int", item)
    end
    return integer
  end,
  uint = function(item)
    local integer = math.tointeger(item)
    if not integer or type(item) ~= "number" then
      return expected("uint", item)
    end
    return values.uint(integer)
  end,
  double = function(item)
    if type(item) ~= "number" then
      return expected("float", item)
    end
    return item + 0.0
  end,
  bytes = of_text(read_bytes),
  timestamp = of_text(read_timestamp),
  duration = of_text(read_duration),
}


local function convert_list(of)
  local convert = M.converter(of.params[1])
  return function(item)
    if type(item) ~= "table" then
      return nil, "invalid data, expected an array for the provided schema with type=array"
    end
    local list = values.list(item, convert)
    list.equal, list.join = of.equal, of.join
    return list
  end
end


local NO_MAP = "invalid data, expected a map for the provided schema with type=object"


local function convert_map(of)
  local convert = M.converter(of.params[2])
  return function(item)
    if type(item) ~= "table" then
      return nil, NO_MAP
    end
    return values.json_map(item, convert)
  end
end


-- Name in JSON → type of the field. The name that expressions use may be another: `key` of a field.
local function types_by_key(of)
  local by_key = {}
  for name, field in pairs(type(of.fields) == "table" and of.fields or {}) do
    by_key[field.key or name] = field.type
  end
  return by_key
end


-- Converters of fields are made when they are first read, as types may be nested in themselves.
local function convert_object(of)
  local by_key, converters = nil, {}
  local function convert_field(key, item)
    local convert = converters[key]
    if not convert then
      by_key = by_key or types_by_key(of)
      local field = not by_key[key] and types.field(of, key)
      convert = M.converter(by_key[key] or field and field.type or types.dyn)
      converters[key] = convert
    end
    return convert(item)
  end
  return function(item)
    if type(item) ~= "table" then
      return nil, NO_MAP
    end
    return values.object(item, of, convert_field)
  end
end


local function convert_null()
  return nil, "invalid data, expected null"
end


-- True if null is a value of the type.
local function accepts_null(of)
  return of.accepts_null or of.nullable or of.kind == "null"
end


local MAKE = { list = convert_list, map = convert_map, object = convert_object }


local made = setmetatable({}, { __mode = "k" }) -- type → converter


--- Returns a function that makes a value of that type of a JSON value; it returns the value, or nil and a message if
--- that does not fit the type. Null fits a type that `accepts_null`; dyn takes what comes.
--- @param of table
--- @return function convert
function M.converter(of)
  if made[of] then
    return made[of]
  elseif of.kind == "dyn" then
    return from_dyn
  end
  local make = MAKE[of.kind]
  local convert = make and make(of) or SCALAR[of.kind] or convert_null
  local with_null = accepts_null(of)
  made[of] = function(item)
    if item == null then
      if with_null then
        return item
      end
      return nil, NULL
    end
    return convert(item)
  end
  return made[of]
end


function from_dyn(item)
  if type(item) ~= "table" then
    return item
  elseif host.json.is_array(item) then
    return values.list(item, from_dyn)
  end
  return values.json_map(item, from_dyn)
end


--- A JSON value as a value of that type.
--- @param item any
--- @param of table|nil dyn when it is left out
--- @return any|nil value
--- @return string? message
function M.from_json(item, of)
  return M.converter(of or types.dyn)(item)
end


local to_json


local function list_to_json(list)
  local array = host.json.array {}
  for i, element in ipairs(values.elements(list)) do
    array[i] = to_json(element)
  end
  return array
end


local function map_to_json(map)
  local object = {}
  for _, key in ipairs(values.keys(map)) do
    local name = type(key) == "string" and key or tostring(to_json(key))
    object[name] = to_json(values.lookup(map, key))
  end
  return object
end


local function object_to_json(object)
  if not object.is_computed then
    return host.json.copy(object.items)
  end
  local fields = {}
  for name, value in pairs(object.items) do
    fields[name] = to_json(value)
  end
  return fields
end


local WRITE = {
  list = list_to_json,
  map = map_to_json,
  object = object_to_json,
  uint = function(value)
    return value.bits >= 0 and value.bits or value.bits + 2.0 ^ 64
  end,
  bytes = function(value)
    return host.base64.encode(value.text)
  end,
  timestamp = times.timestamp_text,
  duration = times.duration_text,
  type = function(value)
    return value.name
  end,
  optional_type = function(value)
    return value.value == nil and values.null or to_json(value.value)
  end,
}


--- A value as JSON. A value may have the same one many times over: what is made is as large as it says.
function to_json(value)
  if type(value) ~= "table" then
    return value
  end
  local write = WRITE[value.tag]
  if write then
    return write(value)
  end
  return tostring(value)
end


M.to_json = to_json


return M
