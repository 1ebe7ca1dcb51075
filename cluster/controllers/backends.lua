--- The pods behind Services: what the controllers of Endpoints and EndpointSlices read of them, and when they look.
---
--- Rules: k8s.io/endpointslice/utils.go (FindPort, setEndpointSliceLabels), k8s.io/endpointslice/util/
--- {controller_utils,trigger_time_tracker}.go.
local host = require "cluster.host"
local ip = require "cluster.apiserver.resources.ip"
local label_selector = require "cluster.apiserver.selector.label_selector"
local pods = require "cluster.controllers.pods"
local store = require "cluster.apiserver.store"

local M = {}

--- The annotation that says when what is behind a Service changed.
M.CHANGED_AT = "endpoints.kubernetes.io/last-change-trigger-time"

local HEADLESS = "service.kubernetes.io/headless"
local PODS, SERVICES = { api_version = "v1", kind = "Pod" }, { api_version = "v1", kind = "Service" }

-- Both by entry, which never changes: to decode one is dear, and most changes of pods concern no Service.
local backends, selectors = setmetatable({}, { __mode = "k" }), setmetatable({}, { __mode = "k" })


-- The named ports of a pod: those of its containers, then of its sidecars.
local function named_ports(spec)
  local list = {}
  local function add(container)
    for _, port in ipairs(container.ports or {}) do
      list[#list + 1] = { name = port.name, protocol = port.protocol or "TCP", number = port.containerPort }
    end
  end
  for _, container in ipairs(spec.containers) do
    add(container)
  end
  for _, container in ipairs(spec.initContainers or {}) do
    if container.restartPolicy == "Always" then
      add(container)
    end
  end
  return list
end


-- By family. Loopback is no address that others could use; the API refuses it.
local function addresses_of(status)
  local list = { IPv4 = host.json.array {}, IPv6 = host.json.array {} }
  for _, own in ipairs(status.podIPs or { { ip = status.podIP } }) do
    local family = own.ip and ip.family(own.ip)
    if family and own.ip:sub(1, 4) ~= "127." then
      table.insert(list[family], own.ip)
    end
  end
  return list
end


-- A pod as an endpoint:
--   target     the reference to it
--   addresses  { IPv4 = list, IPv6 = list }
--   node, hostname, subdomain
--   ports      list of { name =, protocol =, number = }
--   is_over    it has ended, and is behind nothing
--   is_ready, is_going
--   changed    when its readiness changed, or nil
local function read(pod)
  local meta, spec, status = pod.metadata, pod.spec, pod.status or {}
  return {
    target = { kind = "Pod", name = meta.name, namespace = meta.namespace, uid = meta.uid },
    addresses = addresses_of(status),
    node = spec.nodeName,
    hostname = spec.hostname,
    subdomain = spec.subdomain,
    ports = named_ports(spec),
    is_over = status.phase == "Succeeded" or status.phase == "Failed",
    is_ready = pods.is_ready(pod),
    is_going = meta.deletionTimestamp ~= nil,
    changed = (pods.ready_condition(pod) or {}).lastTransitionTime,
  }
end


local function backend_of(entry)
  backends[entry] = backends[entry] or read(store.object(PODS, entry))
  return backends[entry]
end


local function selector_of(entry)
  if selectors[entry] == nil then
    local selector = store.object(SERVICES, entry).spec.selector
    selectors[entry] = selector and { matchLabels = selector } or false
  end
  return selectors[entry]
end


--- Returns true if these controllers say what is behind a Service: it selects pods.
function M.are_selected(service)
  return service.spec.selector ~= nil and service.spec.type ~= "ExternalName"
end


--- The pods that a Service selects, by name, those that are over among them. Not to be changed.
--- @return table list; see `read` above
function M.of(server, service)
  local selector, list = { matchLabels = service.spec.selector }, {}
  server.store:collection("pods"):each(service.metadata.namespace, nil, function(entry)
    if label_selector.match(selector, entry.labels) then
      list[#list + 1] = entry
    end
  end)
  for i, entry in ipairs(list) do
    list[i] = backend_of(entry)
    host.give_way()
  end
  return list
end


--- Says which Services a change of a pod concerns: for `maps` of a controller.
function M.near(server)
  return function(pod, previous, is_gone)
    local keys = {}
    server.store:collection("services"):each(pod.namespace, nil, function(service)
      local selector = selector_of(service)
      local is_in = selector and label_selector.match(selector, pod.labels)
      local was_in = selector and previous and label_selector.match(selector, previous.labels)
      local is_same = is_in and was_in and not is_gone and host.json.equal(backend_of(pod), backend_of(previous))
      if (is_in or was_in) and not is_same then
        keys[#keys + 1] = service.namespace .. "/" .. service.name
      end
    end)
    return keys
  end
end


--- The number in a pod of the port that a Service's port leads to, or nil: the pod has none of that name.
function M.number_of(port, backend)
  local target = port.targetPort or port.port
  if math.type(target) == "integer" then
    return target
  end
  for _, known in ipairs(backend.ports) do
    if known.name == target and known.protocol == (port.protocol or "TCP") then
      return known.number
    end
  end
end


--- The host name of a pod below the Service's name, or nil.
function M.hostname_of(backend, service)
  return backend.subdomain == service.metadata.name and backend.hostname or nil
end


--- The labels of what is made for a Service: its own, and those of the controller.
--- @param own table label → value; for these the Service's own labels have no effect
function M.labels(service, own)
  local labels, address = host.json.copy(service.metadata.labels or {}), service.spec.clusterIP or ""
  labels[HEADLESS] = (address == "" or address == "None") and "" or nil
  for name, value in pairs(own) do
    labels[name] = value
  end
  return labels
end


local Changes = {}
Changes.__index = Changes


--- Remembers when what is behind Services changed last.
function M.changes()
  return setmetatable({ known = {} }, Changes)
end


local function earlier(one, other)
  return (not one or other < one) and other or one
end


--- When that changed which made a controller look: the earliest change since its last look; at its first the Service's
--- creation. To be asked at each look.
--- @param list table see M.of
--- @return string|nil the value of the annotation; nil: nothing changed that has a time
function Changes:since_last_look(service, list)
  local meta, times, first = service.metadata, {}, nil
  local known = self.known[meta.namespace .. "/" .. meta.name]
  for _, backend in ipairs(list) do
    local name, changed = backend.target.name, backend.changed
    if changed and known and changed > (known.pods[name] or "") then
      first = earlier(first, changed)
    end
    times[name] = changed
  end
  if not known or meta.creationTimestamp > known.service then
    first = earlier(known and first, meta.creationTimestamp)
  end
  self.known[meta.namespace .. "/" .. meta.name] = { service = meta.creationTimestamp, pods = times }
  return first
end


--- The Service is gone.
function Changes:forget(namespace, name)
  self.known[namespace .. "/" .. name] = nil
end


return M
