--- Plans calls: evaluates the arguments, chooses the overload, counts the cost.
---
--- A planned node is a function of a frame that returns a value, or nil and a message. The first argument that fails
--- ends the call.
local costs = require "cluster.cel.costs"
local frames = require "cluster.cel.frame"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local spend = frames.spend


-- Does the value fit the declared type, as far as run time knows types? Of lists and maps one element is looked at.
local function fits(value, type)
  local kind = type.kind
  if kind == "dyn" or kind == "param" then
    return true
  elseif values.type_name(value) ~= type.name then
    return false
  elseif kind == "list" then
    return #value.items == 0 or fits(values.element(value, 1), type.params[1])
  elseif kind == "map" then
    local key = values.keys(value)[1]
    return key == nil or fits(key, type.params[1]) and fits(values.lookup(value, key), type.params[2])
  end
  return true
end


local function all_fit(overload, args)
  for i, type in ipairs(overload.args) do
    if not fits(args[i], type) then
      return false
    end
  end
  return true
end


-- The types of a first argument for which cel-go knows an operator. For any other type the error names the operator.
local KNOWS = {}
for operators, kinds in pairs {
  ["_+_"] = "int uint double string bytes list duration timestamp", ["_-_"] = "int uint double duration timestamp",
  ["_*_ _/_"] = "int uint double", ["_%_"] = "int uint", ["-_"] = "bool int double duration",
  ["_<_ _<=_ _>_ _>=_"] = "bool int uint double string bytes timestamp duration",
} do
  for operator in operators:gmatch "%S+" do
    KNOWS[operator] = {}
    for kind in kinds:gmatch "%S+" do
      KNOWS[operator][kind] = true
    end
  end
end


local function no_overload(name, args)
  if not name:find "^[%a@]" then
    local knows = KNOWS[name]
    return knows and not knows[values.tag(args[1])] and "no such overload: " .. name or "no such overload"
  end
  local names = {}
  for i, arg in ipairs(args) do
    names[i] = values.type_name(arg)
  end
  return ("no such overload: %s(%s)"):format(name, table.concat(names, ", "))
end


-- Calls with so many arguments that are known to fit. The cost is counted first: what is too much is not done.

local function call0(overload)
  local run = overload.run
  return function(frame)
    spend(frame, 1)
    return run()
  end
end


local function call1(overload, args, cost)
  local run, a = overload.run, args[1]
  return function(frame)
    local x, message = a(frame)
    if x == nil then
      return nil, message
    end
    spend(frame, cost and cost(x) or 1)
    return run(x)
  end
end


local function call2(overload, args, cost)
  local run, a, b = overload.run, args[1], args[2]
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
    spend(frame, cost and cost(x, y) or 1)
    return run(x, y)
  end
end


-- Evaluates all of them. nil and a message when one fails.
local function evaluate(args, frame)
  local list = {}
  for i, arg in ipairs(args) do
    local value, message = arg(frame)
    if value == nil then
      return nil, message
    end
    list[i] = value
  end
  return list
end


local function finish(frame, overload, cost, list)
  local a, b, c, d = list[1], list[2], list[3], list[4]
  local after = costs.AFTER[overload.name]
  if overload.expect then
    frames.afford(frame, overload.expect(a, b, c, d))
  end
  if not after then
    spend(frame, cost and cost(a, b, c) or 1)
  end
  local result, message = overload.run(a, b, c, d)
  if after then
    spend(frame, after(result))
  end
  return result, message
end


local function call_many(overload, args, cost)
  return function(frame)
    local list, message = evaluate(args, frame)
    if not list then
      return nil, message
    end
    return finish(frame, overload, cost, list)
  end
end


-- A call whose overload is chosen by the values.
local function call_any(name, overloads, args)
  local cost = {}
  for _, overload in ipairs(overloads) do
    cost[overload] = costs.of_call(overload) or false
  end
  return function(frame)
    local list, message = evaluate(args, frame)
    if not list then
      return nil, message
    end
    for _, overload in ipairs(overloads) do
      if all_fit(overload, list) then
        return finish(frame, overload, cost[overload], list)
      end
    end
    spend(frame, 1)
    return nil, no_overload(name, list)
  end
end


local DIRECT = { [0] = call0, call1, call2 }


-- Null may stand where these are declared.
local NULLABLE = { opaque = true, object = true, timestamp = true, duration = true }


-- Is it known before the run that the argument fits?
local function fits_always(type, declared)
  if declared.kind == "dyn" or declared.kind == "param" then
    return true
  elseif type.kind ~= declared.kind or NULLABLE[declared.kind] then
    return false
  elseif types.is_concrete(type) then
    return true
  end
  return (declared.kind == "list" or declared.kind == "map") and declared.params[1].kind == "param"
end


local function is_certain(overload, arg_types)
  for i, declared in ipairs(overload.args) do
    if not fits_always(arg_types[i], declared) then
      return false
    end
  end
  return true
end


--- Plans a call.
--- @param node table { name, overloads, open }: open when types are not checked
--- @param args table planned arguments, the receiver first
--- @param arg_types table their types
function M.plan(node, args, arg_types)
  local overloads = node.overloads
  local overload = overloads[1]
  if #overloads == 1 and not node.open and is_certain(overload, arg_types) then
    local make = not overload.expect and DIRECT[#args] or call_many
    return make(overload, args, costs.of_call(overload))
  end
  return call_any(node.name, overloads, args)
end


return M
