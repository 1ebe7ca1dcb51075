--- EndpointSlices that show what somebody wrote into the Endpoints of a Service without selector: a slice for each set
--- of ports and each family of addresses.
---
--- Rules: kubernetes/pkg/controller/endpointslicemirroring.
local controller = require "cluster.controllers.controller"
local endpoint_subsets = require "cluster.controllers.endpoint_subsets"
local endpointslices = require "cluster.controllers.endpointslices"
local host = require "cluster.host"
local ip = require "cluster.apiserver.resources.ip"

local M = {}

local MANAGER = "endpointslicemirroring-controller.k8s.io"
local SKIP, LEADER = "endpointslice.kubernetes.io/skip-mirror", "control-plane.alpha.kubernetes.io/leader"
-- Annotations of the Endpoints that its slices do not get.
local OWN_ANNOTATIONS = {
  "endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration",
}
local ADDRESSES_MAX = 1000 -- of a subset: --mirroring-max-endpoints-per-subset
local NONE = {}


local function is_mirrored(api, endpoints)
  local meta = endpoints.metadata
  if (meta.labels or NONE)[SKIP] == "true" or (meta.annotations or NONE)[LEADER] then
    return false
  end
  local service = api.get("", "v1", "services", meta.namespace, meta.name)
  return service ~= nil and service.spec.selector == nil
end


local function ports_of(subset)
  local ports = host.json.array {}
  for i, port in ipairs(subset.ports or NONE) do
    ports[i] = { name = port.name or "", port = port.port, protocol = port.protocol, appProtocol = port.appProtocol }
  end
  return ports
end


-- The ready addresses, then the others, as many as are mirrored.
-- @return table list of endpoints  @return integer how many were left out
local function endpoints_of(subset)
  local list, left = {}, 0
  for _, name in ipairs { "addresses", "notReadyAddresses" } do
    for _, address in ipairs(subset[name] or NONE) do
      if #list < ADDRESSES_MAX then
        list[#list + 1] = {
          addresses = host.json.array { address.ip },
          conditions = { ready = name == "addresses" },
          hostname = address.hostname,
          nodeName = address.nodeName,
          targetRef = address.targetRef,
        }
      else
        left = left + 1
      end
    end
  end
  return list, left
end


-- @return table list of { family =, ports =, key =, endpoints = }  @return integer how many addresses were left out
local function groups_of(endpoints)
  local groups, left_out = {}, 0
  for _, subset in ipairs(endpoint_subsets.repack(endpoints.subsets or NONE)) do
    local ports, by_family = ports_of(subset), {}
    local list, left = endpoints_of(subset)
    for _, endpoint in ipairs(list) do
      local family = ip.family(endpoint.addresses[1])
      if not by_family[family] then
        by_family[family] = {
          family = family, ports = ports, key = endpointslices.key_of(ports), endpoints = host.json.array {},
        }
        groups[#groups + 1] = by_family[family]
      end
      table.insert(by_family[family].endpoints, endpoint)
    end
    left_out = left_out + left
  end
  return groups, left_out
end


-- The labels and annotations of all slices.
local function metadata_of(endpoints)
  local meta = endpoints.metadata
  local labels, annotations = host.json.copy(meta.labels or {}), host.json.copy(meta.annotations or {})
  for name, value in pairs(endpointslices.own_labels(meta.name, MANAGER)) do
    labels[name] = value
  end
  for _, name in ipairs(OWN_ANNOTATIONS) do
    annotations[name] = nil
  end
  return labels, annotations
end


local function are_equal(list, others)
  local by_id = {}
  for _, endpoint in ipairs(others) do
    by_id[endpointslices.id_of(endpoint)] = endpoint
  end
  for _, endpoint in ipairs(list) do
    local other = by_id[endpointslices.id_of(endpoint)]
    if not other or not endpointslices.are_alike(endpoint, other) then
      return false
    end
  end
  return #list == #others
end


-- Adds to `changes` what gives a group its one slice.
-- @param slices table those there are with its ports
local function mirror(changes, endpoints, group, slices)
  local meta, first = endpoints.metadata, slices[1]
  local labels, annotations = metadata_of(endpoints)
  table.move(slices, 2, #slices, #changes.delete + 1, changes.delete)
  if first and endpointslices.is_owned(first, endpoints) and are_equal(group.endpoints, first.endpoints)
    and host.json.equal(first.metadata.labels, labels)
    and host.json.equal(first.metadata.annotations or {}, annotations) then
    return
  end
  local slice = endpointslices.new(meta.namespace, meta.name, labels, group.family, group.ports)
  slice.endpoints, slice.metadata.annotations = group.endpoints, annotations
  slice.metadata.name = first and first.metadata.name
  table.insert(first and changes.update or changes.create, slice)
end


local function reconcile(api, endpoints)
  local meta = endpoints.metadata
  local known = endpointslices.read(api, meta.namespace, endpointslices.own_labels(meta.name, MANAGER))
  local slices = {
    IPv4 = endpointslices.by_ports(known.IPv4 or NONE), IPv6 = endpointslices.by_ports(known.IPv6 or NONE),
  }
  local changes, groups, left = endpointslices.changes(), NONE, 0
  if is_mirrored(api, endpoints) then
    groups, left = groups_of(endpoints)
  end
  for _, group in ipairs(groups) do
    mirror(changes, endpoints, group, slices[group.family][group.key] or {})
    slices[group.family][group.key] = nil
  end
  endpointslices.drop(changes, slices.IPv4)
  endpointslices.drop(changes, slices.IPv6)
  endpointslices.write(api, changes, endpoints)
  if left > 0 and #changes.create + #changes.update > 0 then
    api.event(endpoints, "Warning", "TooManyAddressesToMirror", ("A max of %d addresses can be mirrored to "
      .. "EndpointSlices per Endpoints subset. %d addresses were skipped"):format(ADDRESSES_MAX, left))
  end
end


--- Starts the controller.
function M.start(server)
  controller.start(server, {
    name = "endpointslicemirroring-controller",
    kind = { "", "v1", "Endpoints" },
    maps = { services = function(entry)
      return { entry.namespace .. "/" .. entry.name }
    end },
    watches = endpointslices.watches(MANAGER),
    reconcile = reconcile,
    gone = function(api, namespace, name)
      local changes = endpointslices.changes()
      endpointslices.drop(changes, endpointslices.read(api, namespace, endpointslices.own_labels(name, MANAGER)))
      endpointslices.write(api, changes, { metadata = {} })
    end,
  })
end


return M
