--- The built-in kinds that are served.
---
--- What a strategy may have is told in apiserver/init.lua; how a description is completed, in describe.lua.
local M = {}

-- In the order in which discovery lists their groups.
local KINDS = {
  "namespaces", "configmaps", "secrets", "serviceaccounts", "pods", "services", "endpoints", "events", "nodes",
  "persistentvolumes", "persistentvolumeclaims", "podtemplates", "controllerrevisions", "deployments", "replicasets",
  "statefulsets", "jobs", "leases", "endpointslices", "poddisruptionbudgets", "rbac",
  "customresourcedefinitions",
}


--- Descriptions of all built-in kinds, one a group and version, in a list of the caller's own.
function M.all()
  local list = {}
  for _, name in ipairs(KINDS) do
    local made = require("cluster.apiserver.resources." .. name)
    if made.kind then
      list[#list + 1] = made
    else
      table.move(made, 1, #made, #list + 1, list)
    end
  end
  return list
end


return M
