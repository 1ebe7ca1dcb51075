--- EndpointSlices of Services that select pods: a group of slices for each set of numbers that the Service's ports have
--- in its pods, and for each family of addresses.
---
--- Rules: kubernetes/pkg/controller/endpointslice/endpointslice_controller.go,
--- k8s.io/endpointslice/{reconciler,utils}.go. Ports are sorted by name, where Kubernetes sorts them by a hash;
--- topology hints are left out.
local backends = require "cluster.controllers.backends"
local controller = require "cluster.controllers.controller"
local endpointslices = require "cluster.controllers.endpointslices"
local host = require "cluster.host"
local packing = require "cluster.controllers.endpointslice_packing"

local M = {}

local MANAGER = "endpointslice-controller.k8s.io"
local ZONE = "topology.kubernetes.io/zone"


local function by_name(a, b)
  return a.name < b.name
end


local function ports_of(service, backend)
  local ports = host.json.array {}
  for _, port in ipairs(service.spec.ports or {}) do
    local number = backends.number_of(port, backend)
    if number then
      ports[#ports + 1] = {
        name = port.name or "", port = number, protocol = port.protocol or "TCP", appProtocol = port.appProtocol,
      }
    end
  end
  table.sort(ports, by_name)
  return ports
end


local function endpoint_of(service, backend, family, node)
  return {
    addresses = backend.addresses[family],
    conditions = {
      ready = service.spec.publishNotReadyAddresses == true or backend.is_ready and not backend.is_going,
      serving = backend.is_ready,
      terminating = backend.is_going,
    },
    hostname = backends.hostname_of(backend, service),
    nodeName = backend.node,
    zone = node and (node.labels or {})[ZONE],
    targetRef = backend.target,
  }
end


-- The endpoints by the numbers of their ports. A pod whose node is not there is left out.
-- @return table list of { key =, ports =, endpoints = }  @return string|nil the name of such a pod
local function groups_of(server, service, list, family)
  local groups, by_key, lost = {}, {}, nil
  local function add(backend, node)
    local ports = ports_of(service, backend)
    local key = endpointslices.key_of(ports)
    if not by_key[key] then
      by_key[key] = { key = key, ports = ports, endpoints = {} }
      groups[#groups + 1] = by_key[key]
    end
    table.insert(by_key[key].endpoints, endpoint_of(service, backend, family, node))
  end
  for _, backend in ipairs(list) do
    local node = server.store:get("nodes", "", backend.node or "")
    local is_there = not backend.is_over and #backend.addresses[family] > 0
    if is_there and (node or service.spec.publishNotReadyAddresses) then
      add(backend, node)
    elseif is_there then
      lost = backend.target.name
    end
    host.give_way()
  end
  return groups, lost
end


-- A Service without endpoints has one slice that says so.
local function keep_placeholder(changes, known_count, empty)
  if #changes.delete < known_count or changes.create[1] then
    return
  end
  local only = #changes.delete == 1 and changes.delete[1]
  if only and #only.endpoints == 0 and #only.ports == 0
    and host.json.equal(only.metadata.labels, empty.metadata.labels) then
    changes.delete = {}
  else
    changes.create = { empty }
  end
end


-- The slices that are the Service's; those of an earlier Service of that name are to go.
local function own_slices(known, service, changes)
  local own = {}
  for _, slice in ipairs(known) do
    table.insert(endpointslices.is_owned(slice, service) and own or changes.delete, slice)
  end
  return own
end


-- Notes on slices that are about to be written when that changed which they show.
local function note_change(slices, changed)
  for _, slice in ipairs(slices) do
    local annotations = slice.metadata.annotations or {}
    annotations[backends.CHANGED_AT] = changed
    slice.metadata.annotations = next(annotations) and annotations
  end
end


-- @param look table { service =, labels = of its slices, list = of its pods, changed = when they did, or nil }
-- @param known table the slices of that family
-- @return string|nil the name of a pod that was left out
local function reconcile_family(server, api, look, family, known)
  local service, meta, labels = look.service, look.service.metadata, look.labels
  local changes = endpointslices.changes()
  local by_key = endpointslices.by_ports(own_slices(known, service, changes))
  local groups, lost = groups_of(server, service, look.list, family)
  for _, group in ipairs(groups) do
    packing.pack(changes, by_key[group.key] or {}, group.endpoints, labels, function()
      return endpointslices.new(meta.namespace, meta.name, labels, family, group.ports)
    end)
    by_key[group.key] = nil
  end
  endpointslices.drop(changes, by_key)
  keep_placeholder(changes, #known,
    endpointslices.new(meta.namespace, meta.name, labels, family, host.json.array {}))
  note_change(changes.create, look.changed)
  note_change(changes.update, look.changed)
  endpointslices.write(api, changes, service)
  return lost
end


local function reconcile(server, api, service, changes)
  local meta, lost = service.metadata, nil
  local own = endpointslices.own_labels(meta.name, MANAGER)
  local known, list = endpointslices.read(api, meta.namespace, own), backends.of(server, service)
  local look = {
    service = service, labels = backends.labels(service, own), list = list,
    changed = changes:since_last_look(service, list),
  }
  for _, family in ipairs(service.spec.ipFamilies or { "IPv4" }) do
    lost = reconcile_family(server, api, look, family, known[family] or {}) or lost
    known[family] = nil
  end
  local others = endpointslices.changes()
  endpointslices.drop(others, known)
  endpointslices.write(api, others, service)
  if lost then
    error(("skipping Pod %s for Service %s/%s: its node was not found"):format(lost, meta.namespace, meta.name), 0)
  end
end


--- Starts the controller.
function M.start(server)
  local changes = backends.changes()
  controller.start(server, {
    name = "endpointslice-controller",
    kind = { "", "v1", "Service" },
    maps = { pods = backends.near(server) },
    watches = endpointslices.watches(MANAGER),
    reconcile = function(api, service)
      if backends.are_selected(service) then
        reconcile(server, api, service, changes)
      end
    end,
    gone = function(_, namespace, name)
      changes:forget(namespace, name)
    end,
  })
end


return M
