--- Plans the calls that most rules are made of without a call: comparisons of plain values, sums of integers, `in` of a
--- list of constants. They give the same results and costs as calls.lua.
local costs = require "cluster.cel.costs"
local numbers = require "cluster.cel.numbers"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local PLAIN = { int = true, bool = true, double = true, string = true }
local COMPARED = { int = true, double = true, string = true }


-- Ten characters cost 1: mostly nobody has to count them.
local function text_cost(x, y)
  local size = #x < #y and #x or #y
  if size <= 10 then
    return size > 0 and 1 or 0
  end
  return costs.BY_NAME["_!=_"](x, y)
end


-- Evaluates both sides, counts, and compares.
local function binary(compare, is_text)
  return function(args)
    local a, b = args[1], args[2]
    return function(frame)
      local x, message = a(frame)
      if x == nil then
        return nil, message
      end
      local y
      y, message = b(frame)
      if y == nil then
        return nil, message
      end
      if is_text and type(x) == "string" and type(y) == "string" then
        frame.cost = frame.cost + text_cost(x, y)
      else
        frame.cost = frame.cost + 1
      end
      return compare(x, y)
    end
  end
end


local OPERATORS = {
  ["_==_"] = function(x, y)
    return x == y
  end,
  ["_!=_"] = function(x, y)
    return x ~= y
  end,
  ["_<_"] = function(x, y)
    return x < y
  end,
  ["_<=_"] = function(x, y)
    return x <= y
  end,
  ["_>_"] = function(x, y)
    return x > y
  end,
  ["_>=_"] = function(x, y)
    return x >= y
  end,
}

local ARITHMETIC = { ["_+_"] = numbers.add, ["_-_"] = numbers.subtract }

-- operator:kind → what plans it
local PLAN = {}
for name, compare in pairs(OPERATORS) do
  for kind in pairs(PLAIN) do
    if COMPARED[kind] and kind ~= "double" or name == "_==_" or name == "_!=_" then
      PLAN[name .. ":" .. kind] = binary(compare, kind == "string")
    end
  end
end
for name, compute in pairs(ARITHMETIC) do
  PLAN[name .. ":int"] = binary(compute, false)
end


-- The constants of a list as keys of a table; nil when they are not constant, or no keys.
local function constant_set(node)
  if node.kind ~= "list" or next(node.optional) ~= nil then
    return nil
  end
  local set = {}
  for _, element in ipairs(node.elements) do
    local key = element.kind == "const" and values.key(element.value)
    if key == nil or element.kind ~= "const" then
      return nil
    end
    set[key] = true
  end
  return set
end


local function plan_membership(set, element)
  return function(frame)
    local value, message = element(frame)
    if value == nil then
      return nil, message
    end
    local key = values.key(value)
    return key ~= nil and set[key] == true
  end
end


--- Plans a call, if it is one of these.
--- @param node table the call
--- @param nodes table its arguments
--- @param args table these, planned
--- @return function|nil
function M.plan(node, nodes, args)
  if node.target or #nodes ~= 2 then
    return nil
  elseif node.name == "@in" then
    local set = constant_set(nodes[2])
    return set and plan_membership(set, args[1])
  end
  local kind = nodes[1].type.kind
  if not types.is_concrete(nodes[1].type) or not types.is_concrete(nodes[2].type) or kind ~= nodes[2].type.kind then
    return nil
  end
  local plan = PLAN[node.name .. ":" .. kind]
  return plan and plan(args)
end


return M
