--- Builds maps.
local values = require "cluster.cel.values"

local M = {}


--- Adds an entry to the tables of a map.
--- @return boolean ok
--- @return string? message the key is none, or is there already
function M.insert(keys, items, key, value)
  local name = values.key(key)
  if name == nil or values.tag(key) == "double" then
    return false, "unsupported key type"
  elseif items[name] ~= nil then
    return false, "Failed with repeated key"
  end
  keys[#keys + 1] = key
  items[name] = value
  return true
end


return M
