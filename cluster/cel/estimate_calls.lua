--- Estimates the lowest and the highest cost of a call, without its arguments, and the size of its result.
---
--- Each estimator is given the sizes of the receiver and the arguments: (s) → cost, size of the result or nil, where s
--- is { estimator, node, target, args, overload }; s.sizes[1] is that of the receiver, or of the first argument of a
--- function. Rules: apiserver/pkg/cel/library/cost.go, cel-go checker/cost.go, ext/{lists,sets}.go.
local amounts = require "cluster.cel.amounts"

local M = {}

local add, scale, range = amounts.add, amounts.scale, amounts.range
local one = amounts.one

local TRAVERSAL <const> = 0.1
local REGEX <const> = 0.25
local LIST <const> = 11 -- a call that makes a list
local FORMAT_REGEX <const> = 128
local FORMAT_MAX <const> = 64


local function traverse(s)
  return scale(s.sizes[1], TRAVERSAL)
end


local function traverse_twice(s)
  return scale(s.sizes[1], 2 * TRAVERSAL)
end


local function same_size(s)
  return traverse(s), s.sizes[1]
end


-- The size of the elements of a list, as a path or its literal says.
local function element_size(s)
  local estimator, list = s.estimator, s.list
  local path = estimator:path(list)
  if path then
    local longer = table.move(path, 1, #path, 1, {})
    longer[#longer + 1] = "@items"
    return estimator:declared_size(longer) or amounts.unknown
  end
  return amounts.unknown
end


-- isSorted, sum, min, max, indexOf: of a list, or of a text.
local function traverse_list(s)
  local of = s.list.type.params[1]
  if not of then
    return traverse(s)
  end
  local each = one
  if of.kind == "string" or of.kind == "bytes" then
    each = add(each, scale(element_size(s), TRAVERSAL))
  end
  return amounts.multiply(s.sizes[1], each)
end


-- How many times, at most, a text is replaced within another, and how much of it stays.
local function replaced(size, old, new, empty)
  if empty then
    return size < amounts.MAX and size + 1 or size, size
  elseif new <= old then
    return 0, size
  end
  return math.ceil(size / old), 0
end


local function replace(s)
  local size, old, new = s.sizes[1], s.sizes[2], s.sizes[3]
  local most, kept_most = replaced(size.max, old.min, new.max, old.min == 0)
  local least, kept_least
  if old.max == 0 then
    least, kept_least = size.min + 1, size.min
  elseif old.max <= new.min then
    least, kept_least = 0, size.min
  else
    least, kept_least = math.ceil(size.min / old.max), 0
  end
  return traverse_twice(s), add(amounts.multiply(range(least, most), new), range(kept_least, kept_most))
end


local function split(s)
  local most = s.sizes[1].max
  local limit = s.args[2]
  if limit and limit.kind == "const" then
    most = limit.value < 0 and amounts.MAX or limit.value
  end
  return traverse_twice(s), range(0, most)
end


local function join(s)
  local size = s.list.type.params[1] and amounts.multiply(s.sizes[1], element_size(s)) or amounts.zero
  if #s.args > 0 then
    local count = range(math.max(s.sizes[1].min - 1, 0), math.max(s.sizes[1].max - 1, 0))
    size = add(size, amounts.multiply(s.sizes[2], count))
  end
  return scale(size, TRAVERSAL), size
end


local function match(s)
  return amounts.multiply(scale(add(s.sizes[1], one), TRAVERSAL), scale(s.sizes[2], REGEX))
end


local function find(s)
  return match(s), range(0, s.sizes[1].max)
end


local function nominal()
  return one
end


-- Of bytes of addresses: 4 to 16.
local ADDRESS = range(4, 16)


local function contains_ip(s)
  local cost = scale(add(ADDRESS, ADDRESS), TRAVERSAL)
  if s.overload.id:find "string$" then
    cost = add(cost, scale(s.sizes[2], TRAVERSAL))
  end
  return cost
end


local function contains_cidr(s)
  return add(contains_ip(s), add(scale(ADDRESS, TRAVERSAL), one))
end


local function shorter(s)
  local most = math.min(s.sizes[1].max, s.sizes[2].max)
  return scale(range(most > 0 and 1 or 0, most), TRAVERSAL)
end


local CONSTANT_EQUALITY = {
  ["net.IP"] = true, ["net.CIDR"] = true, ["kubernetes.Quantity"] = true, ["kubernetes.Semver"] = true,
}


local function equality(s)
  local name, other = s.args[1].type.name, s.args[2].type.name
  if name == other and CONSTANT_EQUALITY[name] then
    return one
  elseif name == other and name == "kubernetes.NamedFormat" then
    return scale(range(1, FORMAT_MAX), TRAVERSAL)
  elseif name == other and name == "kubernetes.URL" then
    return scale(range(1, s.estimator:size(s.args[2]) and s.sizes[2].max or 1), TRAVERSAL)
  end
  return shorter(s)
end


local function add_texts(s)
  local size = add(s.sizes[1], s.sizes[2])
  return scale(size, TRAVERSAL), size
end


-- Lists.

local function make_list(factor, size)
  return add(scale(size, factor), range(LIST)), size
end


local function constant_int(node, default)
  if node.kind == "const" and node.type.kind == "int" then
    return math.max(node.value, 0)
  end
  return default
end


local function square(s)
  local keys = s.args[1] or s.list
  local size = s.estimator:size_or_unknown(keys)
  local declared = s.overload.args
  local kind = declared[#declared].params[1].kind
  local factor = (kind == "string" or kind == "bytes") and 2.1 or 2
  return make_list(factor, amounts.multiply(size, size))
end


local function sets(factor)
  return function(s)
    return add(scale(amounts.multiply(s.sizes[1], s.sizes[2]), factor), one)
  end
end


local BY_NAME = {
  isSorted = traverse_list, sum = traverse_list, max = traverse_list, min = traverse_list, indexOf = traverse_list,
  lastIndexOf = traverse_list, url = same_size, lowerAscii = same_size, upperAscii = same_size, substring = same_size,
  trim = same_size, replace = replace, split = split, join = join, find = find, findAll = find, cidr = traverse,
  isIP = traverse, isCIDR = traverse, ["ip.isCanonical"] = traverse_twice, containsIP = contains_ip,
  containsCIDR = contains_cidr, quantity = traverse, isQuantity = traverse, semver = traverse, isSemver = traverse,
  validate = function(s)
    return scale(scale(s.sizes[2], TRAVERSAL), FORMAT_REGEX * REGEX)
  end,
  ["_==_"] = equality, ["_!=_"] = shorter,
  startsWith = function(s)
    return scale(s.sizes[2], TRAVERSAL)
  end,
  endsWith = function(s)
    return scale(s.sizes[2], TRAVERSAL)
  end,
}

local BY_ID = {
  string_to_ip = traverse, cidr_ip = nominal, string_format = traverse,
  string_to_bytes = function(s)
    return traverse(s), range(s.sizes[1].min, s.sizes[1].max * 4)
  end,
  bytes_to_string = function(s)
    return traverse(s), range(s.sizes[1].min // 4, s.sizes[1].max)
  end,
  strings_quote = function(s)
    return traverse(s), range(s.sizes[1].min + 2, s.sizes[1].max * 2 + 2)
  end,
  in_list = function(s)
    return s.sizes[2]
  end,
  matches_string = match,
  contains_string = function(s)
    return amounts.multiply(scale(s.sizes[1], TRAVERSAL), scale(s.sizes[2], TRAVERSAL))
  end,
  add_string = add_texts, add_bytes = add_texts,
  add_list = function(s)
    return one, add(s.sizes[1], s.sizes[2])
  end,
  list_slice = function(s)
    local from, to = constant_int(s.args[1], 0), constant_int(s.args[2], s.sizes[1].max)
    return make_list(1, range(math.max(to - from, 0)))
  end,
  list_flatten = function(s)
    return make_list(1, s.sizes[1])
  end,
  list_flatten_int = function(s)
    return make_list(constant_int(s.args[1], amounts.MAX), s.sizes[1])
  end,
  lists_range = function(s)
    return make_list(1, range(constant_int(s.args[1], amounts.MAX)))
  end,
  list_reverse = function(s)
    return make_list(1, s.sizes[1])
  end,
  list_distinct = square,
  list_sets_contains_list = sets(1), list_sets_intersects_list = sets(1), list_sets_equivalent_list = sets(2),
}
for _, name in ipairs { "less", "less_equals", "greater", "greater_equals" } do
  BY_ID[name .. "_string"], BY_ID[name .. "_bytes"] = shorter, shorter
end


local function estimator_of(overload)
  return BY_ID[overload.id] or BY_NAME[overload.name]
    or (overload.name == "sort" or overload.name == "@sortByAssociatedKeys") and square or nominal
end


--- @param estimator table of estimate.lua
--- @param overload table
--- @param node table the call
--- @return table cost
--- @return table|nil size of the result
function M.estimate(estimator, overload, node)
  local sizes = {}
  if node.target then
    sizes[1] = estimator:size_or_unknown(node.target)
  end
  for _, arg in ipairs(node.args) do
    sizes[#sizes + 1] = estimator:size_or_unknown(arg)
  end
  return estimator_of(overload) {
    estimator = estimator, overload = overload, sizes = sizes, args = node.args, list = node.target or node.args[1],
  }
end


return M
