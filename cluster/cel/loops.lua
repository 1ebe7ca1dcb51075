--- Plans loops: all, exists, map, filter and their kin.
---
--- A step costs as much as the calls that cel-go makes of it. Rules: cel-go parser/macro.go,
--- interpreter/interpretable.go (evalFold).
local frames = require "cluster.cel.frame"
local maps = require "cluster.cel.maps"
local numbers = require "cluster.cel.numbers"
local values = require "cluster.cel.values"

local M = {}

-- As Go names the types of values that are no range.
local GO_TYPES = {
  int = "types.Int", uint = "types.Uint", double = "types.Double", bool = "types.Bool", string = "types.String",
  bytes = "types.Bytes", null = "types.Null", timestamp = "types.Timestamp", duration = "types.Duration",
}

local spend = frames.spend
local lookup = values.lookup


-- The parts of a loop: { range, slot, slot2, filter, body }, all planned.
local function plan_parts(planner, node)
  local loop = { range = planner:plan(node.range), slot = planner:slot(node.decl) }
  loop.slot2 = node.decl2 and planner:slot(node.decl2)
  loop.filter = node.filter and planner:plan(node.filter)
  loop.body = planner:plan(node.body)
  loop.is_constant = planner.constants[node.body]
  return loop
end


-- The list or map, how many steps there are, and the keys of a map. nil and a message when there is none.
local function begin(loop, frame)
  local range, message = loop.range(frame)
  if range == nil then
    return nil, message
  end
  local tag = values.tag(range)
  if tag == "list" then
    return range, #range.items
  elseif tag == "map" then
    local keys = values.keys(range)
    return range, #keys, keys
  end
  return nil, (loop.slot2 and "unsupported comprehension range type: %s" or "got '%s', expected iterable type"):format(
    GO_TYPES[tag] or values.type_name(range))
end


-- Sets the variables of a step.
local function assign(loop, frame, range, keys, i)
  local slot, slot2 = loop.slot, loop.slot2
  if keys then
    frame[slot] = keys[i]
    if slot2 then
      frame[slot2] = lookup(range, keys[i])
    end
    return
  end
  local item, convert = range.items[i], range.convert
  if convert then
    local message
    item, message = convert(item)
    frame[-(slot2 or slot)] = message
  end
  if slot2 then
    frame[slot], frame[slot2] = i - 1, item
  else
    frame[slot] = item
  end
end


-- all and exists: the first step that decides ends the loop, once the condition was looked at before the next; what
-- failed counts when none does.
local function quantifier(decisive, condition_cost)
  local step_cost = condition_cost + 1
  return function(loop)
    local body = loop.body
    return function(frame)
      local range, count, keys = begin(loop, frame)
      if range == nil then
        return nil, count
      end
      local failed
      for i = 1, count do
        assign(loop, frame, range, keys, i)
        spend(frame, step_cost)
        local value, message = body(frame)
        if value == decisive then
          frame.cost = frame.cost + (i < count and condition_cost or 0) + 1
          return decisive
        elseif value ~= not decisive then
          failed = failed or message or "no such overload"
        end
      end
      frame.cost = frame.cost + 1
      if failed then
        return nil, failed
      end
      return not decisive
    end
  end
end


local FORM = { all = quantifier(false, 2), exists = quantifier(true, 3) }


function FORM.exists_one(loop)
  local body = loop.body
  return function(frame)
    local range, count, keys = begin(loop, frame)
    if range == nil then
      return nil, count
    end
    local found = 0
    for i = 1, count do
      assign(loop, frame, range, keys, i)
      local value, message = body(frame)
      if value == true then
        found = found + 1
      elseif value ~= false then
        return nil, message or "no such overload"
      end
      spend(frame, value and 2 or 0)
    end
    spend(frame, 2)
    return found == 1
  end
end


-- The loops that make something: make() begins it, add(made, value, key) adds a step's value, finish(made) ends it.
-- `costs` are those of a step, beside its body's, and of one whose body is a constant.
local function maker(make, add, finish, costs)
  return function(loop)
    local body, filter = loop.body, loop.filter
    local step_cost = loop.is_constant and costs.constant or costs.step
    return function(frame)
      local range, count, keys = begin(loop, frame)
      if range == nil then
        return nil, count
      end
      local made = make()
      for i = 1, count do
        assign(loop, frame, range, keys, i)
        local wanted, message = true, nil
        if filter then
          wanted, message = filter(frame)
        end
        if wanted == true then
          local value
          value, message = body(frame)
          if value == nil then
            return nil, message
          end
          local ok
          ok, message = add(made, value, frame[loop.slot])
          if not ok then
            return nil, message
          end
          spend(frame, step_cost)
        elseif wanted == false then
          spend(frame, 0)
        else
          return nil, message or "no such overload"
        end
      end
      frame.cost = frame.cost + 1
      return finish(made)
    end
  end
end


FORM.list = maker(function()
  return {}
end, function(items, value)
  items[#items + 1] = value
  return true
end, values.list, { step = 12, constant = 2 }) -- a list of one constant costs nothing


local function show(key)
  return values.tag(key) == "uint" and numbers.uint_to_text(key) or tostring(key)
end


local function insert(made, key, value)
  local ok, message = maps.insert(made.keys, made.items, key, value)
  if not ok and message == "Failed with repeated key" then
    return false, ("insert failed: key %s already exists"):format(show(key))
  end
  return ok, message
end


local function new_map()
  return { keys = {}, items = {} }
end


local function finish_map(made)
  return values.map(made.keys, made.items)
end


FORM.map = maker(new_map, function(made, value, key)
  return insert(made, key, value)
end, finish_map, { step = 3, constant = 3 })


FORM.entries = maker(new_map, function(made, value)
  if values.tag(value) ~= "map" then
    return false, "no such overload"
  end
  for _, key in ipairs(values.keys(value)) do
    local ok, message = insert(made, key, lookup(value, key))
    if not ok then
      return false, message
    end
  end
  return true
end, finish_map, { step = 2, constant = 2 })


--- Plans a loop.
--- @param planner table
--- @param node table
function M.plan(planner, node)
  return FORM[node.form](plan_parts(planner, node))
end


return M
