--- Where the pods of a Service are: its EndpointSlice, and the Endpoints that older clients read.
---
--- Rules: kubernetes/pkg/controller/endpoint/endpoints_controller.go,
--- k8s.io/endpointslice/{reconciler,utils}.go. One slice holds all endpoints, 1,000 at most.
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local label_selector = require "cluster.apiserver.selector.label_selector"
local pods = require "cluster.controllers.pods"

local M = {}

local SERVICE_NAME = "kubernetes.io/service-name"
local MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
local OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
local ENDPOINTS_MAX = 1000 -- maxCapacity of Endpoints; also what a slice may have


-- The number of the port a Service sends to, in this pod: names are looked up in its containers.
local function target_port(port, pod)
  local target = port.targetPort or port.port
  if math.type(target) == "integer" then
    return target
  end
  for _, container in ipairs(pod.spec.containers) do
    for _, known in ipairs(container.ports or {}) do
      if known.name == target and (known.protocol or "TCP") == (port.protocol or "TCP") then
        return known.containerPort
      end
    end
  end
end


local function ports_of(service, pod)
  local ports = host.json.array {}
  for _, port in ipairs(service.spec.ports or {}) do
    local number = target_port(port, pod)
    if number then
      ports[#ports + 1] = { name = port.name, port = number, protocol = port.protocol or "TCP" }
    end
  end
  return ports
end


local function target_of(pod)
  local meta = pod.metadata
  return { kind = "Pod", name = meta.name, namespace = meta.namespace, uid = meta.uid }
end


-- Loopback is no address that others could use; the API refuses it.
local function has_address(pod)
  local status = pod.status or {}
  return status.phase ~= "Succeeded" and status.phase ~= "Failed" and status.podIP ~= nil
    and status.podIP:sub(1, 4) ~= "127."
end


local function by_port_name(a, b)
  return (a.name or "") < (b.name or "")
end


local function endpoints_of(service, list)
  local ready, unready, ports = host.json.array {}, host.json.array {}, nil
  for _, pod in ipairs(list) do
    local address = { ip = pod.status.podIP, nodeName = pod.spec.nodeName, targetRef = target_of(pod) }
    if pod.spec.hostname and pod.spec.subdomain == service.metadata.name then
      address.hostname = pod.spec.hostname
    end
    ports = ports or ports_of(service, pod)
    local is_ready = pods.is_ready(pod) or service.spec.publishNotReadyAddresses
    table.insert(is_ready and not pod.metadata.deletionTimestamp and ready or unready, address)
  end
  if not ports then
    return nil
  end
  return host.json.array { {
    addresses = #ready > 0 and ready or nil,
    notReadyAddresses = #unready > 0 and unready or nil,
    ports = #ports > 0 and ports or nil,
  } }
end


local function slice_of(service, list)
  local endpoints, ports = host.json.array {}, nil
  for i, pod in ipairs(list) do
    local is_ready, is_going = pods.is_ready(pod), pod.metadata.deletionTimestamp ~= nil
    ports = ports or ports_of(service, pod)
    endpoints[i] = {
      addresses = host.json.array { pod.status.podIP },
      conditions = {
        ready = (is_ready and not is_going) or service.spec.publishNotReadyAddresses == true,
        serving = is_ready,
        terminating = is_going,
      },
      hostname = pod.spec.subdomain == service.metadata.name and pod.spec.hostname or nil,
      nodeName = pod.spec.nodeName,
      targetRef = target_of(pod),
    }
  end
  ports = ports or host.json.array {}
  for _, port in ipairs(ports) do
    port.name = port.name or ""
  end
  table.sort(ports, by_port_name)
  return endpoints, ports
end


local function write_endpoints(api, service, list, is_cut)
  local meta, capacity = service.metadata, is_cut and "truncated" or nil
  local known = api.get("", "v1", "endpoints", meta.namespace, meta.name)
  local subsets = endpoints_of(service, list)
  if not known then
    api.create {
      apiVersion = "v1",
      kind = "Endpoints",
      metadata = {
        name = meta.name, namespace = meta.namespace, labels = meta.labels,
        annotations = capacity and { [OVER_CAPACITY] = capacity },
      },
      subsets = subsets,
    }
  elseif not host.json.equal(known.subsets or {}, subsets or {})
    or (known.metadata.annotations or {})[OVER_CAPACITY] ~= capacity then
    api.patch(known, {
      metadata = { annotations = { [OVER_CAPACITY] = capacity or host.json.null } },
      subsets = subsets or host.json.null,
    })
  end
end


local function write_slice(api, service, list)
  local endpoints, ports = slice_of(service, list)
  local known = api.controlled(service, "discovery.k8s.io", "v1", "endpointslices")[1]
  if not known then
    local labels = host.json.copy(service.metadata.labels or {})
    labels[SERVICE_NAME], labels[MANAGED_BY] = service.metadata.name, "endpointslice-controller.k8s.io"
    api.create({
      apiVersion = "discovery.k8s.io/v1",
      kind = "EndpointSlice",
      metadata = { generateName = service.metadata.name .. "-", labels = labels },
      addressType = "IPv4",
      endpoints = endpoints,
      ports = ports,
    }, service)
  elseif not (host.json.equal(known.endpoints, endpoints) and host.json.equal(known.ports, ports)) then
    api.patch(known, { endpoints = endpoints, ports = ports })
  end
end


local function reconcile(api, service)
  if not service.spec.selector or service.spec.type == "ExternalName" or service.metadata.deletionTimestamp then
    return
  end
  local list, is_cut = api.selected({ matchLabels = service.spec.selector }, "", "v1", "pods",
    service.metadata.namespace, has_address, ENDPOINTS_MAX)
  write_endpoints(api, service, list, is_cut)
  write_slice(api, service, list)
end


-- The Endpoints have no owner; they go with their Service by name.
local function follow_deletions(server)
  server.store:subscribe(function(event)
    if event.id == "services" and event.type == "DELETED" then
      local path = ("/api/v1/namespaces/%s/endpoints/%s"):format(event.entry.namespace, event.entry.name)
      host.defer(function()
        server:call("DELETE", path, nil, { user_agent = "kube-controller-manager" })
      end)
    end
  end)
end


--- Starts the controller.
function M.start(server)
  local res = server.registry:by_kind("", "v1", "Service")
  local selectors = setmetatable({}, { __mode = "k" }) -- by entry, which never changes; reading one is dear

  local function selector_of(entry)
    if selectors[entry] == nil then
      selectors[entry] = server.store.object(res, entry).spec.selector or false
    end
    return selectors[entry]
  end

  -- Most pods are nobody's: only Services that select the pod as it is or was are looked at.
  local function services_near(pod, previous)
    local keys = {}
    server.store:collection("services"):each(pod.namespace, nil, function(service)
      local selector = selector_of(service)
      local wanted = selector and { matchLabels = selector }
      if wanted and (label_selector.match(wanted, pod.labels)
        or previous and label_selector.match(wanted, previous.labels)) then
        keys[#keys + 1] = service.namespace .. "/" .. service.name
      end
    end)
    return keys
  end

  follow_deletions(server)
  controller.start(server, {
    name = "endpoint-controller",
    kind = { "", "v1", "Service" },
    maps = { pods = services_near },
    reconcile = reconcile,
  })
end


return M
