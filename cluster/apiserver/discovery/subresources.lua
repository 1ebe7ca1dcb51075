--- Subresources in discovery: the kind of their answers, and their verbs.
---
--- The subresources of built-in kinds are facts (`res.parts`). Rules for those of custom kinds:
--- customresource_discovery_controller.go of apiextensions-apiserver.
local M = {}

local CHANGE = { "get", "patch", "update" }

-- Parts of custom resources, in this order. No kind: the kind of the whole object; no group: the group version of the
-- whole object.
local CUSTOM = {
  { name = "status", verbs = CHANGE },
  { name = "scale", group = "autoscaling", version = "v1", kind = "Scale", verbs = CHANGE },
}


--- A list as discovery shows it: nothing when it is empty.
function M.list_or_nil(list)
  return list and list[1] and list or nil
end


--- The parts of a resource that discovery lists, in its order.
--- @return table list of { name =, kind =, verbs =, group =, version = }; group and version are nil when they are
---   those of the resource
function M.of(res)
  local list = {}
  for _, part in ipairs(res.parts or CUSTOM) do
    if res.subresources and res.subresources[part.name] then
      list[#list + 1] = {
        name = part.name, kind = part.kind or res.kind, verbs = part.verbs, group = part.group, version = part.version,
      }
    end
  end
  return list
end


return M
