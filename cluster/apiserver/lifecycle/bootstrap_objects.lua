--- Objects that a server itself makes when it starts, unless they are there: classes of priority, levels of flow
--- control, the range that Services get their addresses from.
---
--- They are stored as they are, without the way through a request: a test begins with a new server each time.
--- Rules: kubernetes/pkg/registry/scheduling/rest/storage_scheduling.go, pkg/registry/flowcontrol/ensurer,
--- pkg/controlplane/controller/defaultservicecidr.
local cluster_ip = require "cluster.apiserver.resources.service.cluster_ip"
local fixed = require "cluster.apiserver.resources.flowcontrol.fixed"
local host = require "cluster.host"

local M = {}

local FOUND = "This FlowSchema references the PriorityLevelConfiguration object named %q and it exists"
local KEPT = "apf.kubernetes.io/autoupdate-spec"
local PRIORITIES = {
  ["system-node-critical"] = {
    value = 2000001000,
    description = "Used for system critical pods that must not be moved from their current node.",
  },
  ["system-cluster-critical"] = {
    value = 2000000000,
    description = "Used for system critical pods that must run in the cluster, but can be moved to another node if "
      .. "necessary.",
  },
}


local function sorted(map)
  local names = {}
  for name in pairs(map) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end


-- Kinds without generations.
local WITHOUT_GENERATION = { ServiceCIDR = true }


-- Stores objects made by make(value) for those in `map` that are not there; make may return an annotation as well.
local function ensure(server, api_version, kind, map, make)
  local res = server.registry:of(api_version, kind)
  for _, name in ipairs(res and sorted(map) or {}) do
    if not server.store:get(res.id, "", name) then
      local object, mark = make(map[name])
      object.apiVersion, object.kind = api_version, kind
      object.metadata = {
        name = name, uid = host.uuid(), creationTimestamp = host.timestamp(),
        generation = not WITHOUT_GENERATION[kind] and 1 or nil,
        annotations = mark and { [mark] = "true" } or nil,
      }
      server.store:create(res, object)
    end
  end
end


--- Makes what is missing. Kinds that are not served are left out.
function M.ensure(server)
  local flow = "flowcontrol.apiserver.k8s.io/v1"
  ensure(server, "scheduling.k8s.io/v1", "PriorityClass", PRIORITIES, function(class)
    return { value = class.value, description = class.description, preemptionPolicy = "PreemptLowerPriority" }
  end)
  ensure(server, flow, "PriorityLevelConfiguration", fixed.levels, function(spec)
    return { spec = host.json.copy(spec), status = {} }, KEPT
  end)
  ensure(server, flow, "FlowSchema", fixed.schemas, function(spec)
    return { spec = host.json.copy(spec), status = { conditions = host.json.array { {
      type = "Dangling", status = "False", lastTransitionTime = host.timestamp(), reason = "Found",
      message = FOUND:format(spec.priorityLevelConfiguration.name),
    } } } }, KEPT
  end)
  ensure(server, "networking.k8s.io/v1", "ServiceCIDR", { kubernetes = cluster_ip.RANGE }, function(range)
    return { spec = { cidrs = host.json.array { range } }, status = { conditions = host.json.array { {
      type = "Ready", status = "True", lastTransitionTime = host.timestamp(), reason = "",
      message = "Kubernetes default Service CIDR is ready",
    } } } }
  end)
end


return M
