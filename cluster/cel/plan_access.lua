--- Plans a.b, has(a.b) and a[i]: part of plan.lua.
---
--- A variable costs 1, and so does each field and index of it; what is not a variable costs 1 more to begin with.
local access = require "cluster.cel.access"
local frames = require "cluster.cel.frame"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local null = values.null


-- The variable and the fields of "a.b.c" when a is a variable and all are fields of objects; else nil.
local function object_path(node)
  local names, keys = {}, {}
  while node.kind == "select" and not node.test and node.operand.type.kind == "object" do
    local field = types.field(node.operand.type, node.field)
    table.insert(names, 1, node.field)
    table.insert(keys, 1, field and field.key or node.field)
    node = node.operand
  end
  if node.kind == "ident" and node.ref.value == nil and #names > 0 then
    return node, names, keys
  end
  return nil
end


-- a.b.c of objects is read from the JSON beneath them.
local function plan_path(self, root, names, keys, node)
  local slot, count = self:slot(root.ref), #names
  local convert = self.converter(node.type)
  return function(frame)
    frame.cost = frame.cost + 1 + count
    local object = frame[slot]
    local message
    if object == nil then
      object, message = frames.missing(frame, slot, root.name)
    end
    if object == nil then
      return nil, message
    elseif type(object) ~= "table" or object.tag ~= "object" then
      return nil, "no such key: " .. names[1]
    end
    local item = object.items
    for i = 1, count do
      if type(item) ~= "table" then
        return nil, "no such key: " .. names[i]
      end
      item = item[keys[i]]
      if item == nil or item == null then
        return nil, "no such key: " .. names[i]
      end
    end
    return convert(item)
  end
end


--- Returns true if a node is a variable or reads a part of something: the cost of the variable is then counted there.
function M.is_attribute(node)
  return node.kind == "ident" or node.kind == "select" and not node.test or node.kind == "call" and (node.name == "_[_]"
    or node.name == "_[?_]" or node.name == "_?._")
end


-- True if an access with "?" found nothing: it then costs one less.
local function is_none(element)
  return type(element) == "table" and element.tag == "optional_type" and element.value == nil
end


local function plan_access(operand, key, cost, get, strict)
  return function(frame)
    local value, message = operand(frame)
    if value == nil then
      return nil, message
    end
    local element
    element, message = get(value, key, strict)
    frame.cost = frame.cost + (is_none(element) and cost - 1 or cost)
    return element, message
  end
end


local function plan_index(get)
  return function(self, node)
    local operand, key = self:plan(node.args[1]), self:plan(node.args[2])
    local cost, strict = M.is_attribute(node.args[1]) and 1 or 2, self.env.strict_presence
    return function(frame)
      local value, message = operand(frame)
      if value == nil then
        return nil, message
      end
      local index
      index, message = key(frame)
      if index == nil then
        return nil, message
      end
      local element
      element, message = get(value, index, strict)
      frame.cost = frame.cost + (is_none(element) and cost - 1 or cost)
      return element, message
    end
  end
end


--- Adds the plans. @param PLAN table kind of a node → its plan @param CALL table name of an operator → its plan
function M.add(PLAN, CALL)
  function PLAN.select(self, node)
    local root, names, keys = object_path(node)
    if root then
      return plan_path(self, root, names, keys, node)
    end
    local operand = self:plan(node.operand)
    local cost = M.is_attribute(node.operand) and 1 or 2
    if node.test then
      -- The variable itself is not counted in a test.
      return plan_access(operand, node.field, cost - 1, access.has, self.env.strict_presence)
    end
    return plan_access(operand, node.field, cost, access.get, self.env.strict_presence)
  end

  CALL["_[_]"] = plan_index(access.get)
  CALL["_[?_]"] = plan_index(access.get_optional)
  CALL["_?._"] = plan_index(access.get_optional)
end


return M
