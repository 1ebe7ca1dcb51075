--- Plans lists, maps and objects that an expression makes: part of plan.lua.
local frames = require "cluster.cel.frame"
local maps = require "cluster.cel.maps"
local values = require "cluster.cel.values"

local M = {}

local spend = frames.spend

local LIST_COST <const> = 10
local MAP_COST <const> = 30
local OBJECT_COST <const> = 40


-- Evaluates an element of a literal. Returns whether it did, and the value; of an optional one what it holds, if
-- anything.
local function take(element, optional, frame)
  local value, message = element(frame)
  if value == nil then
    return false, message
  elseif not optional then
    return true, value
  elseif values.tag(value) ~= "optional_type" then
    return false, "cannot initialize optional list element from non-optional value"
  end
  return true, value.value
end


local function plan_object(self, node)
  local fields = {}
  for i, entry in ipairs(node.entries) do
    fields[i] = { name = entry.field, value = self:plan(entry.value), optional = entry.optional }
  end
  return function(frame)
    local items = {}
    for i = 1, #fields do
      local field = fields[i]
      local ok, value = take(field.value, field.optional, frame)
      if not ok then
        return nil, value
      end
      items[field.name] = value
    end
    spend(frame, OBJECT_COST)
    return values.computed_object(items, node.type)
  end
end


--- Adds the plans. @param PLAN table kind of a node → its plan
function M.add(PLAN)
  function PLAN.list(self, node)
    local elements, count = self:plan_all(node.elements), #node.elements
    local optional = node.optional
    local function run(frame)
      local items = {}
      for i = 1, count do
        local ok, value = take(elements[i], optional[i], frame)
        if not ok then
          return nil, value
        end
        items[#items + 1] = value
      end
      spend(frame, LIST_COST)
      return values.list(items)
    end
    if self:all_constant(node.elements) then
      return self:fold_constant(node, run)
    end
    return run
  end

  function PLAN.map(self, node)
    local entries, parts = {}, {}
    for i, entry in ipairs(node.entries) do
      entries[i] = { key = self:plan(entry.key), value = self:plan(entry.value), optional = entry.optional }
      parts[2 * i - 1], parts[2 * i] = entry.key, entry.value
    end
    local function run(frame)
      local keys, items = {}, {}
      for i = 1, #entries do
        local entry = entries[i]
        local key, message = entry.key(frame)
        if key == nil then
          return nil, message
        end
        local ok, value = take(entry.value, entry.optional, frame)
        if ok and value ~= nil then
          ok, value = maps.insert(keys, items, key, value)
        end
        if not ok then
          return nil, value
        end
      end
      spend(frame, MAP_COST)
      return values.map(keys, items)
    end
    if self:all_constant(parts) then
      return self:fold_constant(node, run)
    end
    return run
  end

  function PLAN.struct(self, node)
    if node.type.kind ~= "object" then
      return function()
        return nil, ("unknown type: %s"):format(node.name)
      end
    end
    return plan_object(self, node)
  end
end


return M
