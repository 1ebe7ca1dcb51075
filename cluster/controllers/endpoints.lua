--- Endpoints of Services that select pods: older clients read these, newer ones EndpointSlices.
---
--- Rules: kubernetes/pkg/controller/endpoint/endpoints_controller.go.
local backends = require "cluster.controllers.backends"
local controller = require "cluster.controllers.controller"
local endpoint_subsets = require "cluster.controllers.endpoint_subsets"
local host = require "cluster.host"

local M = {}

local NAME = "endpoint-controller"
local OWN_LABELS = { ["endpoints.kubernetes.io/managed-by"] = NAME }
local OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
local ADDRESSES_MAX = 1000


-- Headless Services may have no ports. @return table list of one port each, or of one nil: { port }
local function ports_of(service, backend)
  local list = {}
  if #(service.spec.ports or {}) == 0 then
    return service.spec.clusterIP == "None" and { {} } or list
  end
  for _, port in ipairs(service.spec.ports) do
    local number = backends.number_of(port, backend)
    if number then
      list[#list + 1] = host.json.array { {
        name = port.name, port = number, protocol = port.protocol or "TCP", appProtocol = port.appProtocol,
      } }
    end
  end
  return list
end


local function subsets_of(service, list)
  local subsets, family = {}, (service.spec.ipFamilies or {})[1] or "IPv4"
  local counts_all = service.spec.publishNotReadyAddresses == true
  for _, backend in ipairs(list) do
    local address = backend.addresses[family][1]
    if address and not backend.is_over and (counts_all or not backend.is_going) then
      local name = (counts_all or backend.is_ready) and "addresses" or "notReadyAddresses"
      local addresses = { {
        ip = address, nodeName = backend.node, targetRef = backend.target,
        hostname = backends.hostname_of(backend, service),
      } }
      for _, ports in ipairs(ports_of(service, backend)) do
        subsets[#subsets + 1] = { [name] = addresses, ports = ports }
      end
    end
  end
  return endpoint_subsets.repack(subsets)
end


local function is_right(known, labels, subsets)
  return host.json.equal(known.metadata.labels or {}, labels)
    and host.json.equal(endpoint_subsets.repack(known.subsets or {}), subsets)
    and not (known.metadata.annotations or {})[OVER_CAPACITY]
end


local function write(api, service, subsets, changed)
  local meta, labels = service.metadata, backends.labels(service, OWN_LABELS)
  local known = api.get("", "v1", "endpoints", meta.namespace, meta.name)
  if known and is_right(known, labels, subsets) then
    return
  end
  local endpoints = known or {
    apiVersion = "v1", kind = "Endpoints", metadata = { name = meta.name, namespace = meta.namespace },
  }
  local annotations = endpoints.metadata.annotations or {}
  annotations[backends.CHANGED_AT] = changed
  annotations[OVER_CAPACITY] = endpoint_subsets.truncate(subsets, ADDRESSES_MAX) and "truncated" or nil
  endpoints.metadata.labels, endpoints.metadata.annotations = labels, next(annotations) and annotations
  endpoints.subsets = subsets
  if known then
    api.replace(endpoints)
  else
    api.create(endpoints)
  end
end


--- Starts the controller.
function M.start(server)
  local changes = backends.changes()
  controller.start(server, {
    name = NAME,
    kind = { "", "v1", "Service" },
    maps = { pods = backends.near(server) },
    -- Endpoints that somebody else deletes come back.
    watches = function(event)
      local entry = event.entry
      return event.id == "endpoints" and event.type == "DELETED" and { entry.namespace .. "/" .. entry.name } or nil
    end,
    reconcile = function(api, service)
      if backends.are_selected(service) and not service.metadata.deletionTimestamp then
        local list = backends.of(server, service)
        write(api, service, subsets_of(service, list), changes:since_last_look(service, list))
      end
    end,
    -- The Endpoints have no owner; they go with their Service by name.
    gone = function(api, namespace, name)
      changes:forget(namespace, name)
      local left = api.get("", "v1", "endpoints", namespace, name)
      if left then
        api.delete(left)
      end
    end,
  })
end


return M
