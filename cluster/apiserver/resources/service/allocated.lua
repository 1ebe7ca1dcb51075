--- The addresses and ports of the cluster's ranges that services already use.
---
--- They are read from the stored services, so none has to be released, and none can leak.
local store = require "cluster.apiserver.store"

local M = {}

local SERVICE = { api_version = "v1", kind = "Service" }
local MANAGER, ALLOCATOR = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
local WITH_PORTS = { NodePort = true, LoadBalancer = true }


local function each(server, but, visit)
  server.store:collection("services"):each(nil, nil, function(entry)
    if entry.uid ~= but then
      visit(entry)
    end
  end)
end


-- Adds the IPAddresses that users made. The IPAddresses of Services are left out: they come and go soon after their
-- Services do.
local function of_others(server, in_use)
  server.store:collection("ipaddresses.networking.k8s.io"):each(nil, nil, function(entry)
    if not (entry.labels and entry.labels[MANAGER] == ALLOCATOR) then
      in_use[entry.name] = true
    end
  end)
end


--- The set of cluster addresses in use. `but`: uid of the service that is asking, or nil.
function M.addresses(server, but)
  local in_use = {}
  each(server, but, function(entry)
    in_use[entry.fields["spec.clusterIP"]] = true
  end)
  of_others(server, in_use)
  return in_use
end


--- The set of ports in use on nodes.
function M.ports(server, but)
  local in_use = {}
  each(server, but, function(entry)
    if not WITH_PORTS[entry.fields["spec.type"]] then
      return
    end
    local spec = store.object(SERVICE, entry).spec
    for _, port in ipairs(spec.ports or {}) do
      if port.nodePort then
        in_use[port.nodePort] = true
      end
    end
    if spec.healthCheckNodePort then
      in_use[spec.healthCheckNodePort] = true
    end
  end)
  return in_use
end


return M
