--- Turns a checked tree into a function of a frame.
---
--- Each node becomes a closure that returns a value, or nil and a message. Variables have numbers in the frame. Costs
--- are counted where cel-go counts them: 1 for a variable, 1 for a field, 10 for a list. Rules: cel-go
--- interpreter/planner.go, interpretable.go, runtimecost.go.
local calls = require "cluster.cel.calls"
local fast = require "cluster.cel.fast"
local frames = require "cluster.cel.frame"
local loops = require "cluster.cel.loops"
local patterns = require "cluster.cel.patterns"
local plan_access = require "cluster.cel.plan_access"
local plan_literals = require "cluster.cel.plan_literals"
local values = require "cluster.cel.values"

local M = {}

local spend = frames.spend

-- Functions that turn a constant into another once. Rules: cel-go interpreter/decorators.go (decOptimize).
local CONVERSIONS = {
  bool = true, bytes = true, double = true, duration = true, dyn = true, int = true, string = true, timestamp = true,
  type = true, uint = true,
}

local Planner = {}
Planner.__index = Planner
local PLAN = {}


--- Plans a node. @return function
function Planner:plan(node)
  if node.failed then
    return function()
      return nil, node.failed
    end
  end
  return PLAN[node.kind](self, node)
end


--- The number of a variable in the frame.
function Planner:slot(declaration)
  local slot = self.slots[declaration]
  if not slot then
    slot = self.count + 1
    self.count = slot
    self.slots[declaration] = slot
    if declaration.bound then
      self.bound[declaration.name] = slot
    end
  end
  return slot
end


local function constant(value)
  return function()
    return value
  end
end


function PLAN.const(self, node)
  self.constants[node] = true
  return constant(node.value)
end


--- Is all of it made of constants? Then it is made once, and costs nothing.
function Planner:all_constant(nodes)
  for _, node in ipairs(nodes) do
    if not self.constants[node] then
      return false
    end
  end
  return true
end


--- The value of a plan that needs no variables, as a plan; the plan itself when it fails.
function Planner:fold_constant(node, run)
  local value, message = run(frames.new(math.huge))
  if value == nil then
    self.failed = self.failed or message
    return run
  end
  self.constants[node] = true
  return constant(value)
end


function PLAN.ident(self, node)
  if node.ref.value ~= nil then
    self.constants[node] = true
    return constant(node.ref.value)
  end
  local slot, name = self:slot(node.ref), node.name
  return function(frame)
    frame.cost = frame.cost + 1
    local value = frame[slot]
    if value == nil then
      return frames.missing(frame, slot, name)
    end
    return value
  end
end


-- Calls.

local CALL = {}


function Planner:plan_all(nodes)
  local planned = {}
  for i, node in ipairs(nodes) do
    planned[i] = self:plan(node)
  end
  return planned
end


-- && ends with the first false, || with the first true, whatever fails before; else what failed first counts.
local function plan_junction(decisive)
  return function(self, node)
    local terms = self:plan_all(node.args)
    local count = #terms
    return function(frame)
      local failed
      for i = 1, count do
        local value, message = terms[i](frame)
        if value == decisive then
          return decisive
        elseif value ~= not decisive then
          failed = failed or message or "no such overload"
        end
      end
      if failed then
        return nil, failed
      end
      return not decisive
    end
  end
end


CALL["_&&_"] = plan_junction(false)
CALL["_||_"] = plan_junction(true)


-- A variable, or what is read of one, costs 1 less as a branch: cel-go does not look at it as a step.
local function plan_branch(self, node)
  local run = self:plan(node)
  if self.constants[node] or not plan_access.is_attribute(node) then
    return run
  end
  return function(frame)
    frame.cost = frame.cost - 1
    return run(frame)
  end
end


CALL["_?_:_"] = function(self, node)
  local test, yes, no = self:plan(node.args[1]), plan_branch(self, node.args[2]), plan_branch(self, node.args[3])
  return function(frame)
    local value, message = test(frame)
    if value == true then
      return yes(frame)
    elseif value == false then
      return no(frame)
    end
    return nil, message or "no such overload"
  end
end


-- a.or(b), a.orValue(b): b is only evaluated when a has no value.
local function plan_or(unwrap)
  return function(self, node)
    local target, other = self:plan(node.target), self:plan(node.args[1])
    return function(frame)
      local value, message = target(frame)
      if value == nil then
        return nil, message
      elseif values.tag(value) ~= "optional_type" then
        return nil, "no such overload"
      end
      if value.value ~= nil then
        return unwrap and value.value or value
      end
      return other(frame)
    end
  end
end


CALL["or"] = plan_or(false)
CALL["orValue"] = plan_or(true)


local PATTERN = { find = true, findAll = true, matches = true } -- their second argument is a pattern


local function plan_call(self, node)
  local nodes = node.args
  if node.target then
    nodes = { node.target, table.unpack(node.args) }
  end
  local pattern = PATTERN[node.name] and nodes[2]
  if pattern and pattern.kind == "const" and type(pattern.value) == "string" then
    local re, message = patterns.compile(pattern.value)
    self.failed = self.failed or not re and message or nil
  end
  local arg_types = {}
  for i, arg in ipairs(nodes) do
    arg_types[i] = arg.type
  end
  local args = self:plan_all(nodes)
  local run = fast.plan(node, nodes, args) or calls.plan(node, args, arg_types)
  if CONVERSIONS[node.name] and self:all_constant(nodes) then
    return self:fold_constant(node, run)
  end
  return run
end


function PLAN.call(self, node)
  local make = CALL[node.name]
  if make and (node.target ~= nil) == (node.name:find "^or" ~= nil) then
    return make(self, node)
  end
  return plan_call(self, node)
end


-- Names within an expression.

function PLAN.fold(self, node)
  return loops.plan(self, node)
end


function PLAN.bind(self, node)
  local init, body = self:plan(node.init), self:plan(node.body)
  local slot = self:slot(node.decl)
  return function(frame)
    local value, message = init(frame)
    if value == nil then
      return nil, message
    end
    frame[slot] = value
    return body(frame)
  end
end


-- cel-go evaluates the receiver of optMap twice, so it is paid for twice.
function PLAN.optmap(self, node)
  local target, body = self:plan(node.target), self:plan(node.body)
  local slot, flat = self:slot(node.decl), node.flat
  return function(frame)
    local before = frame.cost
    local optional, message = target(frame)
    if optional == nil then
      return nil, message
    elseif values.tag(optional) ~= "optional_type" then
      return nil, "no such overload"
    elseif optional.value == nil then
      spend(frame, 2)
      return optional
    end
    spend(frame, frame.cost - before + 3)
    frame[slot] = optional.value
    local value
    value, message = body(frame)
    if value == nil then
      return nil, message
    elseif flat then
      return value
    end
    return values.optional(value)
  end
end


plan_access.add(PLAN, CALL)
plan_literals.add(PLAN)


--- Plans a tree.
--- @param node table
--- @param env table
--- @param converter function (type) → what converts its JSON
--- @return function run (frame) → value, or nil and a message
--- @return table bound name of a variable → its number
--- @return string|nil failed why a constant cannot be made
function M.plan(node, env, converter)
  local planner = setmetatable({
    env = env, slots = {}, count = 0, bound = {}, converter = converter, constants = {},
  }, Planner)
  return planner:plan(node), planner.bound, planner.failed
end


return M
