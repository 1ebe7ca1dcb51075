--- Values and their old values in the same place: what an update did not change may stay wrong.
---
--- A correlation is { new =, old =, schema = }. Rules: apiserver/pkg/cel/common/equality.go,
--- apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go (ratchetingOptions).
local host = require "cluster.host"
local old_items = require "cluster.apiserver.schema.old_items"

local M = {}

local is_array, equal = host.json.is_array, host.json.equal
local LIST_TYPE = "x-kubernetes-list-type"


local function new(value, old, schema)
  return { new = value, old = old, schema = schema }
end


-- The correlation at a key of an object, nil if one of the two values or the schema is missing.
local function at_key(self, key)
  local value, old = self.new, self.old
  if type(value) ~= "table" or is_array(value) or type(old) ~= "table" or is_array(old)
    or value[key] == nil or old[key] == nil then
    return nil
  end
  local additional = self.schema.additionalProperties
  local schema = (self.schema.properties or {})[key] or type(additional) == "table" and additional
  return schema and new(value[key], old[key], schema) or nil
end


local function at_index(self, i)
  local value = self.new
  if type(value) ~= "table" or not is_array(value) or not self.schema.items then
    return nil
  end
  if self.find == nil then
    self.find = old_items(self.schema, self.old) or false
  end
  local old = self.find and value[i] ~= nil and self.find(value[i]) or nil
  return old ~= nil and new(value[i], old, self.schema.items) or nil
end


local is_same


local function same_lists(self)
  local value = self.new
  if #value ~= #self.old then
    return false
  elseif self.schema[LIST_TYPE] ~= "map" then
    return equal(value, self.old)
  end
  for i = 1, #value do
    local item = at_index(self, i)
    if not item or not is_same(item) then
      return false
    end
  end
  return true
end


local function same_objects(self)
  for key in pairs(self.old) do
    if self.new[key] == nil then
      return false
    end
  end
  for key in pairs(self.new) do
    local part = at_key(self, key)
    if not part or not is_same(part) then
      return false
    end
  end
  return true
end


-- True if the values are the same. Items of lists of type map may have changed their places. A value that no schema
-- describes counts as changed.
function is_same(self)
  if self.same == nil then
    local value, old = self.new, self.old
    if type(value) ~= "table" or type(old) ~= "table" then
      self.same = value == old and math.type(value) == math.type(old)
    elseif is_array(value) ~= is_array(old) then
      self.same = false
    else
      self.same = (is_array(value) and same_lists or same_objects)(self)
    end
  end
  return self.same
end


-- The way to a value: what it is compared with, and what the nearest value around it is that can be compared.
local Way = {}
Way.__index = Way

local NOWHERE = setmetatable({}, Way)


--- The way to a whole object. @param old any|nil nil: it is new, or nothing may stay wrong
function M.root(value, old, schema)
  return old == nil and NOWHERE or setmetatable({ here = new(value, old, schema) }, Way)
end


--- The way to what is at a key. Nobody sees the old apiVersion and kind: objects are converted when they are read.
function Way:key(key)
  if not self.here then
    return self
  elseif not self.around and (key == "apiVersion" or key == "kind") then
    return NOWHERE
  end
  return setmetatable({ here = at_key(self.here, key), around = self.here }, Way)
end


--- The way to an item of a list. @param i integer from 1
function Way:index(i)
  if not self.here then
    return self
  end
  return setmetatable({ here = at_index(self.here, i), around = self.here }, Way)
end


--- Returns true if the value is as it was, so that it may stay wrong.
function Way:is_unchanged()
  local compared = self.here or self.around
  return compared ~= nil and is_same(compared)
end


return M
