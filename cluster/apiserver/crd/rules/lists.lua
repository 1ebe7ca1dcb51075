--- Lists that are sets or maps, as rules see them: their order does not count, and a sum has each item once.
---
--- Rules: apiserver/pkg/cel/common/valuesunstructured.go.
local cel = require "cluster.cel"
local host = require "cluster.host"

local M = {}


-- The items of a list as JSON.
local function items_of(list)
  return list.convert and list.items or cel.to_json(list)
end


-- A function that returns the key of an item of a map: a text, or nil for an item that is no object.
local function key_by(keys)
  return function(item)
    if type(item) ~= "table" then
      return nil
    end
    local parts = {}
    for i, key in ipairs(keys) do
      local value = item[key]
      parts[i] = value == nil and "" or type(value) .. host.json.encode(value)
    end
    return table.concat(parts, "\0")
  end
end


local function itself(item)
  return item
end


-- Key of each item of a list → where it stands.
local function places_of(items, key_of)
  local places = {}
  for i, item in ipairs(items) do
    local key = key_of(item)
    if key ~= nil then
      places[key] = i
    end
  end
  return places
end


local function equal_sets(key_of)
  return function(a, b)
    local places = places_of(items_of(a), key_of)
    for _, item in ipairs(items_of(b)) do
      if not places[key_of(item)] then
        return false
      end
    end
    return true
  end
end


local function equal_maps(key_of)
  return function(a, b, equal)
    local places = places_of(items_of(a), key_of)
    for i, item in ipairs(items_of(b)) do
      local key = key_of(item)
      local place = key and places[key]
      if not place or not equal(cel.values.element(a, place), cel.values.element(b, i)) then
        return false
      end
    end
    return true
  end
end


-- a + b: what b has as well takes the place that it has in a; the rest comes behind.
local function join_by(key_of)
  return function(a, b)
    local first = items_of(a)
    local items, places = table.move(first, 1, #first, 1, host.json.array {}), places_of(first, key_of)
    for _, item in ipairs(items_of(b)) do
      local key = key_of(item)
      local place = key ~= nil and places[key] or #items + 1
      items[place] = item
      if key ~= nil then
        places[key] = place
      end
    end
    local list = cel.values.list(items, a.convert)
    list.equal, list.join = a.equal, a.join
    return list
  end
end


--- Tells the type of a list what the schema says of it.
--- @param type table  @param schema table of the list
function M.describe(type, schema)
  local kind, keys = schema["x-kubernetes-list-type"], schema["x-kubernetes-list-map-keys"]
  if kind == "set" then
    type.equal, type.join = equal_sets(itself), join_by(itself)
  elseif kind == "map" and keys then
    type.equal, type.join = equal_maps(key_by(keys)), join_by(key_by(keys))
  end
end


return M
