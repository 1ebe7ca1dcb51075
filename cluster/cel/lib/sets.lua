--- The libraries of lists: sets.contains, sum, min, sort, flatten and others.
---
--- Rules: cel-go ext/{sets,lists}.go (version 3), apiserver/pkg/cel/library/lists.go.
local compare = require "cluster.cel.compare"
local frames = require "cluster.cel.frame"
local lists = require "cluster.cel.lists"
local numbers = require "cluster.cel.numbers"
local times = require "cluster.cel.times"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local COMPARABLE = { "int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes" }
local CREATE <const> = 11 -- a call that makes a list


local function contains_all(list, part)
  for _, element in ipairs(values.elements(part)) do
    if not lists.find(list, element) then
      return false
    end
  end
  return true
end


local function intersects(a, b)
  for _, element in ipairs(values.elements(a)) do
    if lists.find(b, element) then
      return true
    end
  end
  return false
end


local function product_cost(factor)
  return function(a, b)
    return 1 + #a.items * #b.items * factor
  end
end


local function add_sets(functions)
  functions:add("sets.contains", "list_sets_contains_list", "(list(T), list(T)) -> bool", contains_all)
  functions:cost(product_cost(1))
  functions:add("sets.equivalent", "list_sets_equivalent_list", "(list(T), list(T)) -> bool", function(a, b)
    return contains_all(a, b) and contains_all(b, a)
  end)
  functions:cost(product_cost(2))
  functions:add("sets.intersects", "list_sets_intersects_list", "(list(T), list(T)) -> bool", intersects)
  functions:cost(product_cost(1))
end


-- Kubernetes' own.

local function is_sorted(list)
  local elements = values.elements(list)
  for i = 2, #elements do
    local order, message = compare.compare(elements[i - 1], elements[i])
    if not order then
      return nil, message
    elseif order > 0 then
      return false
    end
  end
  return true
end


local function extreme(name, wanted)
  return function(list)
    local best
    for _, element in ipairs(values.elements(list)) do
      local order, message = -wanted, nil
      if best ~= nil then
        order, message = compare.compare(best, element)
      end
      if not order then
        return nil, message
      elseif best == nil or order == -wanted then
        best = element
      end
    end
    if best == nil then
      return nil, name .. " called on empty list"
    end
    return best
  end
end


local SUMS = {
  int = { 0, numbers.add },
  uint = { values.uint(0), numbers.add_uint },
  double = { 0.0, function(a, b)
    return a + b
  end },
  duration = { values.duration(0), times.add_durations },
}


local function sum(kind)
  local zero, add = SUMS[kind][1], SUMS[kind][2]
  return function(list)
    local total = zero
    for _, element in ipairs(values.elements(list)) do
      local message = "no such overload"
      if values.tag(element) == kind then
        total, message = add(total, element)
      else
        total = nil
      end
      if total == nil then
        return nil, message
      end
    end
    return total
  end
end


local function last_find(list, element)
  for i = #list.items, 1, -1 do
    if compare.equal(values.element(list, i), element) then
      return i
    end
  end
  return 0
end


local function add_kubernetes(functions)
  for _, kind in ipairs(COMPARABLE) do
    local list = ("list(%s).()"):format(kind)
    functions:add("isSorted", ("list_%s_is_sorted_bool"):format(kind), list .. " -> bool", is_sorted)
    functions:add("max", ("list_%s_max_%s"):format(kind, kind), list .. " -> " .. kind, extreme("max", 1))
    functions:add("min", ("list_%s_min_%s"):format(kind, kind), list .. " -> " .. kind, extreme("min", -1))
    if SUMS[kind] then
      functions:add("sum", ("list_%s_sum_%s"):format(kind, kind), list .. " -> " .. kind, sum(kind))
    end
  end
  functions:add("indexOf", "list_a_index_of_int", "list(A).(A) -> int", function(list, element)
    return (lists.find(list, element) or 0) - 1
  end)
  functions:add("lastIndexOf", "list_a_last_index_of_int", "list(A).(A) -> int", function(list, element)
    return last_find(list, element) - 1
  end)
end


-- cel-go's.

local function slice(list, from, to)
  local call = ("cannot slice(%d, %d), "):format(from, to)
  if from < 0 or to < 0 then
    return nil, call .. "negative indexes not supported"
  elseif from > to then
    return nil, call .. "start index must be less than or equal to end index"
  elseif #list.items < to then
    return nil, call .. ("list is length %d"):format(#list.items)
  end
  return values.list(table.move(values.elements(list), from + 1, to, 1, {}))
end


local function flatten_into(items, list, depth)
  frames.visit(#list.items)
  for _, element in ipairs(values.elements(list)) do
    if depth > 0 and values.tag(element) == "list" then
      flatten_into(items, element, depth - 1)
    else
      items[#items + 1] = element
    end
  end
end


local function flatten(list, depth)
  if depth and depth < 0 then
    return nil, "level must be non-negative"
  end
  local items = {}
  flatten_into(items, list, depth or 1)
  return values.list(items)
end


local function sort_by(list, keys)
  local elements, by = values.elements(list), values.elements(keys)
  local order = {}
  for i = 1, #by do
    order[i] = i
    if values.tag(by[i]) ~= values.tag(by[1]) then
      return nil, "list elements must have the same type"
    elseif not compare.compare(by[i], by[i]) and by[i] == by[i] then
      return nil, "list elements must be comparable"
    end
  end
  table.sort(order, function(a, b)
    local result = compare.compare(by[a], by[b])
    return result == -1 or result == 0 and a < b
  end)
  for i, at in ipairs(order) do
    order[i] = elements[at]
  end
  return values.list(order)
end


local function distinct(list)
  local items = {}
  local made = values.list(items)
  for _, element in ipairs(values.elements(list)) do
    if not lists.find(made, element) then
      items[#items + 1] = element
    end
  end
  return made
end


local function reverse(list)
  local elements, items = values.elements(list), {}
  for i = #elements, 1, -1 do
    items[#items + 1] = elements[i]
  end
  return values.list(items)
end


local function range(count)
  local items = {}
  for i = 1, count do
    items[i] = i - 1
  end
  return values.list(items)
end


-- Of what compares all elements with all others.
local function square_cost(_, keys)
  local size = #keys.items
  local kind = size > 0 and values.tag(values.element(keys, 1))
  local factor = (kind == "string" or kind == "bytes") and 2.1 or 2
  return math.floor(size * size * factor) + CREATE
end


local function own_square_cost(list)
  return square_cost(nil, list)
end


local function size_cost(list)
  return #list.items + CREATE
end


local function add_lists(functions)
  functions:add("slice", "list_slice", "list(T).(int, int) -> list(T)", slice)
  functions:cost(function(_, from, to)
    return math.max((to or 0) - from, 0) + CREATE
  end)
  functions:add("flatten", "list_flatten", "list(list(T)).() -> list(T)", flatten)
  functions:cost(size_cost)
  functions:add("flatten", "list_flatten_int", "list(dyn).(int) -> list(dyn)", flatten)
  functions:cost(function(list, depth)
    return #list.items * math.max(depth, 0) + CREATE
  end)
  for _, kind in ipairs(COMPARABLE) do
    local list = ("list(%s)"):format(kind)
    local name = types[kind].name
    functions:add("sort", ("list_%s_sort"):format(name), ("%s.() -> %s"):format(list, list), function(own)
      return sort_by(own, own)
    end)
    functions:cost(own_square_cost)
    functions:add("@sortByAssociatedKeys", ("list_%s_sortByAssociatedKeys"):format(name),
      ("list(T).(%s) -> list(T)"):format(list), sort_by)
    functions:cost(square_cost)
  end
  functions:add("lists.range", "lists_range", "(int) -> list(int)", range)
  functions:cost(function(count)
    return math.max(count, 0) + CREATE
  end)
  functions:add("reverse", "list_reverse", "list(T).() -> list(T)", reverse)
  functions:cost(size_cost)
  functions:add("distinct", "list_distinct", "list(T).() -> list(T)", distinct)
  functions:cost(own_square_cost)
end


--- Adds them.
function M.add(functions)
  add_sets(functions)
  add_kubernetes(functions)
  add_lists(functions)
end


return M
