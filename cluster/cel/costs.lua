--- The costs of calls when they run, in the units of Kubernetes.
---
--- Rules: cel-go interpreter/runtimecost.go, apiserver/pkg/cel/library/cost.go.
local frames = require "cluster.cel.frame"
local values = require "cluster.cel.values"

local M = {}

-- A tenth of a unit for each character.
local TRAVERSAL <const> = 0.1
local REGEX <const> = 0.25


--- The size that costs are counted by: 1 for what has none.
function M.size(value)
  local size = values.size(value)
  if not size and type(value) == "table" and value.tag == "optional_type" and value.value ~= nil then
    return M.size(value.value)
  end
  return size or 1
end


local size = M.size


local function ceil(number)
  return math.ceil(number)
end


local function traverse_first(a)
  return ceil(size(a) * TRAVERSAL)
end


local function traverse_twice(a)
  return ceil(size(a) * 2 * TRAVERSAL)
end


local function traverse_both(a, b)
  return ceil((size(a) + size(b)) * TRAVERSAL)
end


local function traverse_shorter(a, b)
  local x, y = size(a), size(b)
  return ceil((x < y and x or y) * TRAVERSAL)
end


local function match_cost(a, b)
  return ceil((1 + size(a)) * TRAVERSAL) * ceil(size(b) * REGEX)
end


-- Of a list, map or text with all that is in it.
local function traversal(value)
  local tag = values.tag(value)
  local cost = 0
  if tag == "string" then
    return math.floor(#value * TRAVERSAL)
  elseif tag == "bytes" then
    return math.floor(#value.text * TRAVERSAL)
  elseif tag == "list" then
    frames.visit(#value.items)
    for i = 1, #value.items do
      cost = cost + traversal(values.element(value, i))
    end
    return cost
  elseif tag == "map" then
    frames.visit(#values.keys(value))
    for _, key in ipairs(values.keys(value)) do
      cost = cost + traversal(key) + traversal(values.lookup(value, key))
    end
    return cost
  end
  return 1
end


-- The types of Kubernetes' libraries are compared in one step.
local function equality(a, b)
  if type(a) == "table" and a.type then
    return 1
  end
  return traverse_shorter(a, b)
end


--- Costs that depend on the result: the function's name → a function of its result.
M.AFTER = {
  join = function(result)
    return result == nil and 1 or ceil(size(result) * 2 * TRAVERSAL)
  end,
}


--- by the function's name
M.BY_NAME = {
  isSorted = traversal, sum = traversal, max = traversal, min = traversal, indexOf = traversal, lastIndexOf = traversal,
  url = traverse_first, lowerAscii = traverse_first, upperAscii = traverse_first, substring = traverse_first,
  trim = traverse_first, replace = traverse_twice, split = traverse_twice,
  find = match_cost, findAll = match_cost, cidr = traverse_first, isIP = traverse_first, isCIDR = traverse_first,
  ["ip.isCanonical"] = traverse_twice, quantity = traverse_first, isQuantity = traverse_first,
  semver = traverse_first, isSemver = traverse_first, ["_==_"] = equality, ["_!=_"] = traverse_shorter,
  startsWith = traverse_first, endsWith = traverse_first,
}

--- by the overload's id
M.BY_ID = {
  string_to_bytes = traverse_first, bytes_to_string = traverse_first, strings_quote = traverse_first,
  string_format = traverse_first, string_to_ip = traverse_first,
  in_list = function(_, b)
    return size(b)
  end,
  add_string = traverse_both, add_bytes = traverse_both, matches = match_cost, matches_string = match_cost,
  contains_string = function(a, b)
    return ceil(size(a) * TRAVERSAL) * ceil(size(b) * TRAVERSAL)
  end,
}
for _, name in ipairs { "less", "less_equals", "greater", "greater_equals" } do
  M.BY_ID[name .. "_string"] = traverse_shorter
  M.BY_ID[name .. "_bytes"] = traverse_shorter
end


--- The function that gives the cost of a call.
--- @param overload table
--- @return function|nil cost (a, b, c) → integer; nil when each call costs 1
function M.of_call(overload)
  return M.BY_ID[overload.id] or overload.cost or M.BY_NAME[overload.name]
end


return M
