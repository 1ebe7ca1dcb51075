--- Values and types of cel-spec's conformance data (cel/expr/{value,checked}.proto) as this server has them.
---
--- Values and types that need messages of Protocol Buffers raise UNSUPPORTED.
local cel = require "cluster.cel"
local maps = require "cluster.cel.maps"

local types, values = cel.types, cel.values

local M = {}

M.UNSUPPORTED = {}

local PRIMITIVE = {
  BOOL = types.bool, INT64 = types.int, UINT64 = types.uint, DOUBLE = types.double, STRING = types.string,
  BYTES = types.bytes,
}
local MESSAGE = { ["google.protobuf.Timestamp"] = types.timestamp, ["google.protobuf.Duration"] = types.duration }
local WELL_KNOWN = { ANY = types.dyn, TIMESTAMP = types.timestamp, DURATION = types.duration }
local DOUBLES = { inf = math.huge, ["-inf"] = -math.huge, infinity = math.huge, nan = 0 / 0 }


local function integer(word)
  return math.tointeger(tonumber(word)) or cel.env():compile(word .. "u"):run().bits
end


local function int(word)
  return word == "-9223372036854775808" and math.mininteger or math.tointeger(tonumber(word))
end


local value


local OBJECT = {
  ["google.protobuf.Timestamp"] = function(message)
    return values.timestamp(int((message.seconds or { "0" })[1]), int((message.nanos or { "0" })[1]))
  end,
  ["google.protobuf.Duration"] = function(message)
    return values.duration(int((message.seconds or { "0" })[1]) * 1000000000 + int((message.nanos or { "0" })[1]))
  end,
}


local READ = {
  int64_value = int,
  uint64_value = function(word)
    return values.uint(integer(word))
  end,
  double_value = function(word)
    return (DOUBLES[word:lower()] or tonumber(word)) + 0.0
  end,
  string_value = function(text)
    return text.text
  end,
  bytes_value = function(text)
    return values.bytes(text.text)
  end,
  bool_value = function(word)
    return word == "true"
  end,
  null_value = function()
    return values.null
  end,
  list_value = function(message)
    local items = {}
    for i, item in ipairs(message.values or {}) do
      items[i] = value(item)
    end
    return values.list(items)
  end,
  map_value = function(message)
    local keys, items = {}, {}
    for _, entry in ipairs(message.entries or {}) do
      maps.insert(keys, items, value(entry.key[1]), value(entry.value[1]))
    end
    return values.map(keys, items)
  end,
  type_value = function(text)
    return { tag = "type", name = text.text }
  end,
  object_value = function(message)
    local name, list = next(message)
    local read = OBJECT[name:match "%[type%.googleapis%.com/(.*)%]"]
    if read then
      return read(list[1])
    end
    error(M.UNSUPPORTED, 0)
  end,
}


--- A value. @param message table of cel.expr.Value
function value(message)
  local name, list = next(message)
  if not READ[name] then
    error(M.UNSUPPORTED, 0)
  end
  return READ[name](list[1])
end


M.value = value


local function each_type(list)
  local params = {}
  for i, param in ipairs(list or {}) do
    params[i] = M.type(param)
  end
  return params
end


--- A type. @param message table of cel.expr.Type
function M.type(message)
  if message.primitive then
    return PRIMITIVE[message.primitive[1]]
  elseif message.well_known then
    return WELL_KNOWN[message.well_known[1]]
  elseif message.wrapper then
    return types.wrapper(PRIMITIVE[message.wrapper[1]])
  elseif message.null then
    return types.null
  elseif message.dyn then
    return types.dyn
  elseif message.list_type then
    return types.list(each_type(message.list_type[1].elem_type)[1] or types.dyn)
  elseif message.map_type then
    local map = message.map_type[1]
    return types.map(each_type(map.key_type)[1] or types.dyn, each_type(map.value_type)[1] or types.dyn)
  elseif message.type then
    return types.type_of(M.type(message.type[1]))
  elseif message.abstract_type then
    local abstract = message.abstract_type[1]
    return types.opaque(abstract.name[1].text, table.unpack(each_type(abstract.parameter_types)))
  elseif message.type_param then
    return types.param(message.type_param[1].text)
  elseif message.message_type and MESSAGE[message.message_type[1].text] then
    return MESSAGE[message.message_type[1].text]
  end
  error(M.UNSUPPORTED, 0)
end


return M
