--- The functions that an environment has: name → overloads.
---
--- An overload is { id, name, member, args, result, params, run, cost, expect }. run(a, b, …) returns a value, or nil
--- and a message; cost(a, b, c) is what a call costs, where costs.lua does not say it; expect(a, b, c) is what it must
--- be able to afford before it runs, as its result may be large.
local signature = require "cluster.cel.signature"

local M = {}

local Functions = {}
Functions.__index = Functions


--- An empty set. @return table functions
function M.new()
  return setmetatable({ by_name = {}, names = {} }, Functions)
end


--- Types that declarations may name, beside those of the language.
--- @param names table
function Functions:name_types(names)
  for name, type in pairs(names) do
    self.names[name] = type
  end
end


--- Adds an overload.
--- @param name string
--- @param id string as cel-go names it
--- @param declaration string see signature.lua
--- @param run function|nil nil for what the planner does itself
--- @param expect function|nil
function Functions:add(name, id, declaration, run, expect)
  local overload = signature.read(declaration, self.names)
  overload.id, overload.name, overload.run, overload.expect = id, name, run, expect
  local list = self.by_name[name] or {}
  list[#list + 1] = overload
  self.by_name[name] = list
  self.last = overload
end


--- Says what the overload that was added last costs.
function Functions:cost(cost)
  self.last.cost = cost
end


return M
