--- Equality and order of values.
---
--- Numbers of all types are on one line; values of other types are unequal. Rules: cel-go
--- common/types/{compare,list,map}.go.
local frames = require "cluster.cel.frame"
local values = require "cluster.cel.values"

local M = {}

local TWO_63 <const> = 2.0 ^ 63


local function order(a, b)
  return a < b and -1 or a > b and 1 or 0
end


-- Integers and doubles are compared as doubles.
local function order_mixed(a, b)
  if math.type(a) == math.type(b) then
    return order(a, b)
  end
  return order(a + 0.0, b + 0.0)
end


-- A uint that fits no int, with any other number.
local function order_large(bits, number)
  if math.type(number) == "integer" then
    return 1
  end
  return order((bits - math.mininteger) + TWO_63, number)
end


local function compare_uint(a, b)
  if type(b) == "table" then
    return a.bits == b.bits and 0 or math.ult(a.bits, b.bits) and -1 or 1
  elseif a.bits >= 0 then
    return order_mixed(a.bits, b)
  end
  return order_large(a.bits, b)
end


local function is_number(value)
  return type(value) == "number" or type(value) == "table" and value.tag == "uint"
end


-- Of two numbers; nil when one is no number at all (NaN).
local function compare_numbers(a, b)
  if a ~= a or b ~= b then
    return nil
  elseif type(a) == "table" then
    return compare_uint(a, b)
  elseif type(b) == "table" then
    return -compare_uint(b, a)
  end
  return order_mixed(a, b)
end


local COMPARE = {
  string = order,
  bool = function(a, b)
    return a == b and 0 or b and -1 or 1
  end,
  bytes = function(a, b)
    return order(a.text, b.text)
  end,
  duration = function(a, b)
    return order(a.nanos, b.nanos)
  end,
  timestamp = function(a, b)
    return a.seconds == b.seconds and order(a.nanos, b.nanos) or order(a.seconds, b.seconds)
  end,
}


--- Orders two values.
--- @return integer|nil -1, 0 or 1
--- @return string? message
function M.compare(a, b)
  if is_number(a) and is_number(b) then
    local result = compare_numbers(a, b)
    if not result then
      return nil, "NaN values cannot be ordered"
    end
    return result
  end
  local tag = values.tag(a)
  local compare = COMPARE[tag]
  if not compare or tag ~= values.tag(b) then
    return nil, "no such overload"
  end
  return compare(a, b)
end


local equal


local function equal_lists(a, b)
  if #a.items ~= #b.items then
    return false
  elseif a.equal then -- a list that a schema calls a set or a map
    frames.visit(#a.items)
    return a.equal(a, b, equal)
  end
  frames.visit(#a.items)
  for i = 1, #a.items do
    if not equal(values.element(a, i), values.element(b, i)) then
      return false
    end
  end
  return true
end


local function equal_maps(a, b)
  local keys = values.keys(a)
  if #keys ~= #values.keys(b) then
    return false
  end
  frames.visit(#keys)
  for _, key in ipairs(keys) do
    local other = values.lookup(b, key)
    if other == nil or not equal(values.lookup(a, key), other) then
      return false
    end
  end
  return true
end


local function equal_objects(a, b)
  for name, item in pairs(a.items) do
    frames.visit(1)
    local other = b.items[name]
    if other == nil or not equal(a.convert(name, item), b.convert(name, other)) then
      return false
    end
  end
  for name in pairs(b.items) do
    if a.items[name] == nil then
      return false
    end
  end
  return true
end


local EQUAL = {
  list = equal_lists,
  map = equal_maps,
  object = equal_objects,
  type = function(a, b)
    return a.name == b.name
  end,
  optional_type = function(a, b)
    if a.value == nil or b.value == nil then
      return a.value == b.value
    end
    return equal(a.value, b.value)
  end,
}


--- Are they the same value?
--- @return boolean
function equal(a, b)
  if a == b then
    return true
  elseif is_number(a) and is_number(b) then
    return compare_numbers(a, b) == 0
  end
  local tag = values.tag(a)
  if tag ~= values.tag(b) then
    return false
  elseif EQUAL[tag] then
    return EQUAL[tag](a, b)
  elseif COMPARE[tag] then
    return COMPARE[tag](a, b) == 0
  end
  return type(a) == "table" and a.equal ~= nil and a:equal(b)
end


M.equal = equal


return M
