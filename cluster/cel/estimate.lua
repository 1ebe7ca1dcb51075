--- How much a run of a checked tree costs at least and at most, as far as types say how large values are.
---
--- Where a value comes from is a path: { "self", "a", "@items" }. Its size stands in the type at the end of the path,
--- seen from the variable `self`: Kubernetes' estimate has no other root. Rules: cel-go checker/cost.go,
--- apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go (sizeEstimator).
local amounts = require "cluster.cel.amounts"
local call_costs = require "cluster.cel.estimate_calls"
local types = require "cluster.cel.types"

local M = {}

local add, union, one, zero = amounts.add, amounts.union, amounts.one, amounts.zero

local LIST <const> = 10
local MAP <const> = 30

local Estimator = {}
Estimator.__index = Estimator
local COST = {}


-- Sizes.

local SCALAR = { bool = true, double = true, duration = true, int = true, timestamp = true, uint = true }


local function is_scalar(type)
  return SCALAR[type.kind] or types.is_optional(type) and is_scalar(type.params[1])
end


-- The type at the end of a path; nil when nothing is known of it, and the size of the keys of a map.
local function follow(root, path)
  local type = root
  for i = 2, #path do
    local name = path[i]
    if name == "@items" or name == "@values" then
      type = type.kind == "list" and type.params[1] or type.kind == "map" and type.params[2] or nil
    elseif name == "@keys" then
      return nil, type.kind == "map" and zero or nil
    else
      local field = type.kind == "object" and types.field(type, name)
      type = field and field.type
    end
    if not type then
      return nil
    end
  end
  return type
end


-- The size that the declarations of types give for a path, or nil.
function Estimator:declared_size(path)
  if not path or #path == 0 or not self.root then
    return nil
  end
  local type, size = follow(self.root, path)
  if not type then
    return size
  elseif type.max_size then
    return amounts.range(0, type.max_size)
  elseif SCALAR[type.kind] or type.kind == "object" or type.kind == "dyn" then
    return zero
  end
  return nil
end


local function literal_size(node)
  if node.kind == "const" then
    local value = node.value
    if type(value) == "string" then
      return amounts.range(utf8.len(value) or #value)
    elseif node.type.kind == "bytes" then
      return amounts.range(#value.text)
    end
    return one
  elseif node.kind == "list" then
    return amounts.range(#node.elements)
  elseif node.kind == "map" then
    return amounts.range(#node.entries)
  end
  return nil
end


function Estimator:path(node)
  local var = node.kind == "ident" and self.vars[node.ref]
  if var then
    return var.path
  end
  return self.paths[node]
end


--- The size of a node's value, or nil.
function Estimator:size(node)
  local size = self.sizes[node] or literal_size(node) or self:declared_size(self:path(node))
    or is_scalar(node.type) and one
  if not size and node.kind == "ident" and self.vars[node.ref] then
    size = self.vars[node.ref].size
  end
  return size or nil
end


function Estimator:size_or_unknown(node)
  return self:size(node) or amounts.unknown
end


-- { kind, key, value }: the sizes of what is in a list or map; nil when nothing is known.
function Estimator:entry(node)
  local var = node.kind == "ident" and self.vars[node.ref]
  return self.entries[node] or var and var.entry or nil
end


local function join_entries(a, b)
  if not a or not b then
    return nil
  end
  return { kind = a.kind, key = union(a.key, b.key), value = union(a.value, b.value) }
end


-- Nodes.

--- The cost of a node.
function Estimator:cost(node)
  return COST[node.kind](self, node)
end


function COST.const()
  return zero
end


function COST.ident(self, node)
  local var = self.vars[node.ref]
  self.paths[node] = var and (var.path or {}) or { node.name }
  return one
end


local function extended(path, name)
  local copy = table.move(path or {}, 1, #(path or {}), 1, {})
  copy[#copy + 1] = name
  return copy
end


function COST.select(self, node)
  local cost = self:cost(node.operand)
  if node.test then
    return cost
  end
  local kind = node.operand.type.kind
  self.paths[node] = extended(self:path(node.operand), node.field)
  return (kind == "map" or kind == "object" or kind == "param") and add(cost, one) or cost
end


function COST.list(self, node)
  local cost, size = amounts.range(LIST), nil
  for _, element in ipairs(node.elements) do
    cost = add(cost, self:cost(element))
    local element_size = self:size_or_unknown(element)
    size = size and union(size, element_size) or element_size
  end
  self.entries[node] = { kind = "list", key = one, value = size or zero }
  return cost
end


function COST.map(self, node)
  local cost, key, value = amounts.range(MAP), nil, nil
  for _, entry in ipairs(node.entries) do
    cost = add(cost, add(self:cost(entry.key), self:cost(entry.value)))
    local key_size, value_size = self:size_or_unknown(entry.key), self:size_or_unknown(entry.value)
    key, value = key and union(key, key_size) or key_size, value and union(value, value_size) or value_size
  end
  self.entries[node] = { kind = "map", key = key or zero, value = value or zero }
  return cost
end


function COST.struct(self, node)
  local cost = amounts.range(40)
  for _, entry in ipairs(node.entries) do
    cost = add(cost, self:cost(entry.value))
  end
  return cost
end


-- Calls.

local CALL = {}


-- The first term always runs, the others may not.
CALL["_&&_"] = function(self, node)
  local total
  for _, arg in ipairs(node.args) do
    local cost = self:cost(arg)
    total = total and amounts.range(total.min, add(total, cost).max) or cost
  end
  self.sizes[node] = one
  return total
end


CALL["_||_"] = CALL["_&&_"]


CALL["_?_:_"] = function(self, node)
  local test, yes, no = self:cost(node.args[1]), self:cost(node.args[2]), self:cost(node.args[3])
  self.sizes[node] = union(self:size_or_unknown(node.args[2]), self:size_or_unknown(node.args[3]))
  self.entries[node] = join_entries(self:entry(node.args[2]), self:entry(node.args[3]))
  return add(test, union(yes, no))
end


CALL["dyn"] = function(self, node)
  local cost = self:cost(node.args[1])
  self.sizes[node], self.entries[node] = self:size(node.args[1]), self:entry(node.args[1])
  return add(cost, one)
end


CALL["_?._"] = function(self, node)
  return add(self:cost(node.args[1]), one)
end


local ELEMENTS = { index_list = "@items", index_map = "@values" }


-- Notes the sizes of the elements of a sum, and the path of an element; returns the size of an element, or nil.
function Estimator:note_call(node, overload)
  local first = node.args[1]
  if overload.name == "_+_" then
    local entry = join_entries(self:entry(first), self:entry(node.args[2]))
    self.entries[node] = entry or self.entries[node]
  elseif ELEMENTS[overload.id] then
    self.paths[node] = extended(self:path(first), ELEMENTS[overload.id])
    local entry = self:entry(first)
    return entry and entry.value
  end
  return nil
end


function COST.call(self, node)
  if CALL[node.name] and not node.target then
    return CALL[node.name](self, node)
  end
  local args, total = zero, zero
  for _, arg in ipairs(node.args) do
    args = add(args, self:cost(arg))
  end
  if node.target then
    total = self:cost(node.target)
  end
  local cost, size
  for _, overload in ipairs(node.overloads) do
    local call, result = call_costs.estimate(self, overload, node)
    cost = cost and union(cost, call) or call
    if result then
      size = size and union(size, result) or result
    end
    size = self:note_call(node, overload) or size
  end
  self.sizes[node] = size or self:size(node)
  return add(total, add(cost, args))
end


-- Loops.

-- Notes the paths and sizes of the variables of a loop.
function Estimator:enter(node)
  local range = node.range
  local entry, path = self:entry(range), self:path(range)
  local is_list = (entry and entry.kind or range.type.kind) == "list"
  local key = { path = extended(path, is_list and "@indices" or "@keys"), size = entry and entry.key }
  local value = { path = extended(path, is_list and "@items" or "@values"), size = entry and entry.value }
  if node.decl2 then
    self.vars[node.decl], self.vars[node.decl2] = key, value
  else
    self.vars[node.decl] = is_list and value or key
  end
end


-- The cost of one step, without its body; the cost of the loop, counted once; and is its result a bool?
local FORM = {
  all = { step = amounts.range(3), once = one, is_bool = true },
  exists = { step = amounts.range(4), once = one, is_bool = true },
  exists_one = { step = amounts.range(1, 2), once = amounts.range(2), is_bool = true },
  list = { step = amounts.range(2 + LIST), once = amounts.range(LIST + 1) },
  map = { step = amounts.range(3), once = amounts.range(MAP + 1) },
  entries = { step = amounts.range(2), once = amounts.range(MAP + 1) },
}


function Estimator:step(node, form)
  local body = self:cost(node.body)
  if node.form == "all" or node.form == "exists" then
    body = amounts.range(0, body.max) -- behind && and ||
  end
  local step = add(body, form.step)
  if node.filter then
    step = add(self:cost(node.filter), union(step, one))
  end
  return step
end


function COST.fold(self, node)
  local form, total = FORM[node.form], self:cost(node.range)
  self:enter(node)
  local count = self:size_or_unknown(node.range)
  total = add(total, add(form.once, amounts.multiply(count, self:step(node, form))))
  if form.is_bool then
    self.sizes[node] = one
  else
    self.sizes[node] = count
  end
  if node.form == "list" then
    local size = self:size_or_unknown(node.body)
    self.entries[node] = { kind = "list", key = one, value = union(zero, size) }
  end
  return total
end


function COST.bind(self, node)
  local init = self:cost(node.init)
  self.vars[node.decl] = { path = self:path(node.init), size = self:size(node.init), entry = self:entry(node.init) }
  local body = self:cost(node.body)
  self.sizes[node], self.entries[node] = self:size(node.body), self:entry(node.body)
  return add(amounts.range(LIST), add(init, body))
end


-- The cost of optMap, which stands for a.hasValue() ? optional.of(bind a.value()) : optional.none()
function COST.optmap(self, node)
  local target = add(self:cost(node.target), one)
  self.vars[node.decl] = {}
  local bound = add(amounts.range(LIST + (node.flat and 0 or 1)), add(target, self:cost(node.body)))
  return add(target, union(bound, one))
end


--- @param node table checked
--- @param env table
--- @return table { min, max } integers
function M.estimate(node, env)
  local root = env.names.self
  local type = root and root.type
  if type and types.is_optional(type) then
    type = type.params[1]
  end
  local estimator = setmetatable({ root = type, vars = {}, paths = {}, sizes = {}, entries = {} }, Estimator)
  return amounts.whole(estimator:cost(node))
end


return M
