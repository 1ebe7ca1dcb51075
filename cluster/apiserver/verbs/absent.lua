--- Tells which groups and parts of objects a real server has and this one does not; for such a part it answers 501.
local facts = require "cluster.kinds.resources"

local groups, parts = {}, {}   -- set of groups; id of a resource → set of parts

for _, resource in ipairs(facts) do
  local group, plural = resource.group, resource.plural
  groups[group] = true
  for _, part in ipairs(resource.parts or {}) do
    local id = group == "" and plural or plural .. "." .. group
    parts[id] = parts[id] or {}
    parts[id][part.name] = true
  end
end

local M = {}


--- Returns true if a real server has that group built in.
function M.group(group)
  return groups[group] == true
end


--- Returns true if objects of the resource with that id have a part of that name on a real server.
function M.part(id, name)
  return parts[id] ~= nil and parts[id][name] == true
end


return M
