--- What discovery tells of the parts of objects: which kind they answer with, and which verbs they have.
---
--- Rules: the storages of kubernetes/pkg/registry, customresource_discovery_controller.go of apiextensions-apiserver.
local M = {}

local CHANGE = { "get", "patch", "update" }
local CREATE = { "create" }
local STREAM = { "create", "get" }
local PROXY = { "create", "delete", "get", "patch", "update" }

local SCALE = { group = "autoscaling", version = "v1", kind = "Scale", verbs = CHANGE }

-- By id of the resource. No kind: the kind of the whole object; no group: the group version of the whole object.
local OF = {
  namespaces = { finalize = { verbs = { "update" } } },
  nodes = { proxy = { kind = "NodeProxyOptions", verbs = PROXY } },
  pods = {
    attach = { kind = "PodAttachOptions", verbs = STREAM },
    binding = { kind = "Binding", verbs = CREATE },
    ephemeralcontainers = { verbs = CHANGE },
    eviction = { group = "policy", version = "v1", kind = "Eviction", verbs = CREATE },
    exec = { kind = "PodExecOptions", verbs = STREAM },
    log = { verbs = { "get" } },
    portforward = { kind = "PodPortForwardOptions", verbs = STREAM },
    proxy = { kind = "PodProxyOptions", verbs = PROXY },
    resize = { verbs = CHANGE },
  },
  services = { proxy = { kind = "ServiceProxyOptions", verbs = PROXY } },
  serviceaccounts = {
    token = { group = "authentication.k8s.io", version = "v1", kind = "TokenRequest", verbs = CREATE },
  },
}

local STATUS = { verbs = CHANGE }

-- Parts of custom resources, in this order.
local CUSTOM = { "status", "scale" }


local function facts_of(res, name)
  if name == "status" then
    return STATUS
  elseif name == "scale" then
    return SCALE
  end
  return OF[res.id] and OF[res.id][name]
end


local function names_of(res)
  if not res.builtin then
    return CUSTOM
  end
  local names = {}
  for name in pairs(res.subresources) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end


--- A list as discovery shows it: nothing when it is empty.
function M.listed(list)
  return list and list[1] and list or nil
end


--- The parts of a resource that discovery lists, in its order.
--- @return table list of { name =, kind =, verbs =, group =, version = }; group and version are nil when they are
---   those of the resource
function M.of(res)
  local list = {}
  for _, name in ipairs(names_of(res)) do
    local facts = res.subresources and res.subresources[name] and facts_of(res, name)
    if facts then
      list[#list + 1] = {
        name = name, kind = facts.kind or res.kind, verbs = facts.verbs, group = facts.group, version = facts.version,
      }
    end
  end
  return list
end


return M
