--- The old values of the items of a list. Only lists of type map have keys to find them by.
---
--- Rules: apiserver/pkg/cel/common/maplist.go.
local host = require "cluster.host"

local null, is_array = host.json.null, host.json.is_array


-- The text that an item has its place by, nil for none.
local function key_of(item, keys)
  if type(item) ~= "table" or is_array(item) then
    return nil
  end
  local parts = {}
  for i, key in ipairs(keys) do
    local value = item[key]
    local kind = math.type(value) or type(value)
    if value == nil or value == null or kind == "table" then
      return nil
    end
    parts[i] = kind .. tostring(value)
  end
  return table.concat(parts, "\0")
end


--- @param schema table of the list  @param old any its old value
--- @return function|nil (item) -> the old value of the item, nil for none; nil for what is no list of type map
return function(schema, old)
  local keys = schema["x-kubernetes-list-map-keys"]
  if schema["x-kubernetes-list-type"] ~= "map" or not keys or #keys == 0
    or type(old) ~= "table" or not is_array(old) then
    return nil
  end
  local by_key = {}
  for _, item in ipairs(old) do
    local key = key_of(item, keys)
    if key and by_key[key] == nil then
      by_key[key] = item
    end
  end
  return function(item)
    local key = key_of(item, keys)
    return key and by_key[key]
  end
end
