--- The operators.
---
--- Rules: cel-go common/stdlib/standard.go.
local compare = require "cluster.cel.compare"
local lists = require "cluster.cel.lists"
local numbers = require "cluster.cel.numbers"
local times = require "cluster.cel.times"
local values = require "cluster.cel.values"

local M = {}


local function comparison(holds)
  return function(a, b)
    local order, message = compare.compare(a, b)
    if not order then
      return nil, message
    end
    return holds(order)
  end
end


local COMPARISONS = {
  ["_<_"] = { "less", comparison(function(order)
    return order < 0
  end) },
  ["_<=_"] = { "less_equals", comparison(function(order)
    return order <= 0
  end) },
  ["_>_"] = { "greater", comparison(function(order)
    return order > 0
  end) },
  ["_>=_"] = { "greater_equals", comparison(function(order)
    return order >= 0
  end) },
}

local ORDERED = { "bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration" }
local NUMBERS = { "int", "uint", "double" }
local IDS = { int = "int64", uint = "uint64" }


local function id_of(name)
  return IDS[name] or name
end


local function add_comparisons(functions)
  for operator, entry in pairs(COMPARISONS) do
    for _, name in ipairs(ORDERED) do
      functions:add(operator, entry[1] .. "_" .. id_of(name), ("(%s, %s) -> bool"):format(name, name), entry[2])
    end
    for _, a in ipairs(NUMBERS) do
      for _, b in ipairs(NUMBERS) do
        if a ~= b then
          local id = ("%s_%s_%s"):format(entry[1], id_of(a), id_of(b))
          functions:add(operator, id, ("(%s, %s) -> bool"):format(a, b), entry[2])
        end
      end
    end
  end
end


local function add_sums(functions)
  functions:add("_+_", "add_bytes", "(bytes, bytes) -> bytes", function(a, b)
    return values.bytes(a.text .. b.text)
  end)
  functions:add("_+_", "add_double", "(double, double) -> double", function(a, b)
    return a + b
  end)
  functions:add("_+_", "add_duration_duration", "(duration, duration) -> duration", times.add_durations)
  functions:add("_+_", "add_duration_timestamp", "(duration, timestamp) -> timestamp", function(a, b)
    return times.later(b, a)
  end)
  functions:add("_+_", "add_timestamp_duration", "(timestamp, duration) -> timestamp", times.later)
  functions:add("_+_", "add_int64", "(int, int) -> int", numbers.add)
  functions:add("_+_", "add_list", "(list(A), list(A)) -> list(A)", lists.concat)
  functions:add("_+_", "add_string", "(string, string) -> string", function(a, b)
    return a .. b
  end)
  functions:add("_+_", "add_uint64", "(uint, uint) -> uint", numbers.add_uint)
end


local function add_differences(functions)
  functions:add("_-_", "subtract_double", "(double, double) -> double", function(a, b)
    return a - b
  end)
  functions:add("_-_", "subtract_duration_duration", "(duration, duration) -> duration", times.subtract_durations)
  functions:add("_-_", "subtract_int64", "(int, int) -> int", numbers.subtract)
  functions:add("_-_", "subtract_timestamp_duration", "(timestamp, duration) -> timestamp", times.earlier)
  functions:add("_-_", "subtract_timestamp_timestamp", "(timestamp, timestamp) -> duration", times.between)
  functions:add("_-_", "subtract_uint64", "(uint, uint) -> uint", numbers.subtract_uint)
  functions:add("-_", "negate_double", "(double) -> double", function(a)
    return -a
  end)
  functions:add("-_", "negate_int64", "(int) -> int", numbers.negate)
end


local function add_products(functions)
  functions:add("_*_", "multiply_double", "(double, double) -> double", function(a, b)
    return a * b
  end)
  functions:add("_*_", "multiply_int64", "(int, int) -> int", numbers.multiply)
  functions:add("_*_", "multiply_uint64", "(uint, uint) -> uint", numbers.multiply_uint)
  functions:add("_/_", "divide_double", "(double, double) -> double", function(a, b)
    return a / b
  end)
  functions:add("_/_", "divide_int64", "(int, int) -> int", numbers.divide)
  functions:add("_/_", "divide_uint64", "(uint, uint) -> uint", numbers.divide_uint)
  functions:add("_%_", "modulo_int64", "(int, int) -> int", numbers.modulo)
  functions:add("_%_", "modulo_uint64", "(uint, uint) -> uint", numbers.modulo_uint)
end


local function has_key(key, map)
  return values.lookup(map, key) ~= nil
end


-- &&, ||, the ternary and indexes have no function here: the planner runs them itself.
local function add_logic(functions)
  functions:add("_?_:_", "conditional", "(bool, A, A) -> A")
  functions:add("_&&_", "logical_and", "(bool, bool) -> bool")
  functions:add("_||_", "logical_or", "(bool, bool) -> bool")
  functions:add("!_", "logical_not", "(bool) -> bool", function(a)
    return not a
  end)
  functions:add("_==_", "equals", "(A, A) -> bool", compare.equal)
  functions:add("_!=_", "not_equals", "(A, A) -> bool", function(a, b)
    return not compare.equal(a, b)
  end)
  functions:add("@in", "in_list", "(A, list(A)) -> bool", lists.contains)
  functions:add("@in", "in_map", "(A, map(A, B)) -> bool", has_key)
  functions:add("_[_]", "index_list", "(list(A), int) -> A")
  functions:add("_[_]", "index_map", "(map(A, B), A) -> B")
end


--- Adds them.
function M.add(functions)
  add_logic(functions)
  add_comparisons(functions)
  add_sums(functions)
  add_differences(functions)
  add_products(functions)
end


return M
