--- Functions that turn a value of one type into one of another, and size().
---
--- Rules: cel-go common/stdlib/standard.go, ConvertToType of each type in common/types.
local floats = require "cluster.cel.floats"
local literals = require "cluster.cel.literals"
local numbers = require "cluster.cel.numbers"
local times = require "cluster.cel.times"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local TRUE = { ["1"] = true, t = true, T = true, ["true"] = true, TRUE = true, True = true }
local FALSE = { ["0"] = true, f = true, F = true, ["false"] = true, FALSE = true, False = true }


local function same(a)
  return a
end


local function refuse(to)
  return nil, ("type conversion error from 'string' to '%s'"):format(to.name)
end


local function text_to_bool(text)
  if TRUE[text] then
    return true
  elseif FALSE[text] then
    return false
  end
  return refuse(types.bool)
end


local function text_to_int(text)
  local sign, digits = text:match "^([-+]?)(%d+)$"
  local value = digits and literals.int(digits, sign == "-")
  if not value then
    return refuse(types.int)
  end
  return value
end


local function text_to_uint(text)
  local bits = text:find "^%d+$" and literals.uint(text .. "u")
  if not bits then
    return refuse(types.uint)
  end
  return values.uint(bits)
end


local SPECIAL = { inf = math.huge, infinity = math.huge, nan = 0 / 0 }


local function text_to_double(text)
  local sign, rest = text:match "^([-+]?)(.*)$"
  local value = SPECIAL[rest:lower()]
  if not value and (rest:find "^%d" or rest:find "^%.%d") and not rest:find "[xX]%x*$" then
    value = tonumber(rest)
    if value and value + 0.0 == math.huge then
      value = nil
    end
  end
  if not value then
    return refuse(types.double)
  end
  return (sign == "-" and -value or value) + 0.0
end


local function text_to_timestamp(text)
  local timestamp, message = times.read_timestamp(text)
  if not timestamp then
    if message then
      return nil, message
    end
    return refuse(types.timestamp)
  end
  return timestamp
end


local function text_to_duration(text)
  local nanos = times.read_duration(text)
  if not nanos then
    return refuse(types.duration)
  end
  return values.duration(nanos)
end


local function bytes_to_text(bytes)
  if not utf8.len(bytes.text) then
    return nil, "invalid UTF-8 in bytes, cannot convert to string"
  end
  return bytes.text
end


local function add_scalars(functions)
  functions:add("bool", "bool_to_bool", "(bool) -> bool", same)
  functions:add("bool", "string_to_bool", "(string) -> bool", text_to_bool)
  functions:add("bytes", "bytes_to_bytes", "(bytes) -> bytes", same)
  functions:add("bytes", "string_to_bytes", "(string) -> bytes", values.bytes)
  functions:add("double", "double_to_double", "(double) -> double", same)
  functions:add("double", "int64_to_double", "(int) -> double", function(a)
    return a + 0.0
  end)
  functions:add("double", "string_to_double", "(string) -> double", text_to_double)
  functions:add("double", "uint64_to_double", "(uint) -> double", numbers.uint_to_double)
  functions:add("int", "int64_to_int64", "(int) -> int", same)
  functions:add("int", "double_to_int64", "(double) -> int", numbers.double_to_int)
  functions:add("int", "duration_to_int64", "(duration) -> int", function(duration)
    return duration.nanos
  end)
  functions:add("int", "string_to_int64", "(string) -> int", text_to_int)
  functions:add("int", "timestamp_to_int64", "(timestamp) -> int", function(timestamp)
    return timestamp.seconds
  end)
  functions:add("int", "uint64_to_int64", "(uint) -> int", numbers.uint_to_int)
  functions:add("uint", "uint64_to_uint64", "(uint) -> uint", same)
  functions:add("uint", "double_to_uint64", "(double) -> uint", numbers.double_to_uint)
  functions:add("uint", "int64_to_uint64", "(int) -> uint", numbers.int_to_uint)
  functions:add("uint", "string_to_uint64", "(string) -> uint", text_to_uint)
end


local function add_texts(functions)
  functions:add("string", "string_to_string", "(string) -> string", same)
  functions:add("string", "bool_to_string", "(bool) -> string", tostring)
  functions:add("string", "bytes_to_string", "(bytes) -> string", bytes_to_text)
  functions:add("string", "double_to_string", "(double) -> string", floats.general)
  functions:add("string", "duration_to_string", "(duration) -> string", times.duration_text)
  functions:add("string", "int64_to_string", "(int) -> string", tostring)
  functions:add("string", "timestamp_to_string", "(timestamp) -> string", times.timestamp_text)
  functions:add("string", "uint64_to_string", "(uint) -> string", numbers.uint_to_text)
end


local function add_times(functions)
  functions:add("timestamp", "timestamp_to_timestamp", "(timestamp) -> timestamp", same)
  functions:add("timestamp", "int64_to_timestamp", "(int) -> timestamp", function(seconds)
    return times.timestamp(seconds, 0)
  end)
  functions:add("timestamp", "string_to_timestamp", "(string) -> timestamp", text_to_timestamp)
  functions:add("duration", "duration_to_duration", "(duration) -> duration", same)
  functions:add("duration", "int64_to_duration", "(int) -> duration", values.duration)
  functions:add("duration", "string_to_duration", "(string) -> duration", text_to_duration)
end


--- Adds them.
function M.add(functions)
  add_scalars(functions)
  add_texts(functions)
  add_times(functions)
  functions:add("dyn", "to_dyn", "(A) -> dyn", same)
  functions:add("type", "type", "(A) -> type(A)", values.type)
  for _, name in ipairs { "bytes", "list(A)", "map(A, B)", "string" } do
    local short = name:match "^%a+"
    functions:add("size", "size_" .. short, ("(%s) -> int"):format(name), values.size)
    functions:add("size", short .. "_size", name .. ".() -> int", values.size)
  end
end


return M
