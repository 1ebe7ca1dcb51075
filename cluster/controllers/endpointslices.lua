--- The EndpointSlices that a controller keeps for a Service: how they are found, compared, made and written.
---
--- Rules: k8s.io/endpointslice/reconciler.go (finalize), util/{controller_utils,endpointset}.go.
local host = require "cluster.host"

local M = {}

local GROUP, VERSION, PLURAL = "discovery.k8s.io", "v1", "endpointslices"
local ID = PLURAL .. "." .. GROUP
local SERVICE_NAME, MANAGED_BY = "kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"
local NONE = {}


--- The labels by which a controller knows its slices of a Service.
function M.own_labels(service_name, manager)
  return { [SERVICE_NAME] = service_name, [MANAGED_BY] = manager }
end


-- A list of a slice that may be missing, or null.
local function list_of(list)
  return type(list) == "table" and list or host.json.array {}
end


--- The slices with these labels, except those that are about to go. @return table addressType → list, by name
function M.read(api, namespace, labels)
  local by_type = {}
  for _, slice in ipairs(api.labelled(labels, GROUP, VERSION, PLURAL, namespace)) do
    slice.endpoints, slice.ports = list_of(slice.endpoints), list_of(slice.ports)
    if not slice.metadata.deletionTimestamp then
      by_type[slice.addressType] = by_type[slice.addressType] or {}
      table.insert(by_type[slice.addressType], slice)
    end
  end
  return by_type
end


--- A new slice without endpoints, for a Service of that name.
function M.new(namespace, service_name, labels, address_type, ports)
  return {
    apiVersion = GROUP .. "/" .. VERSION,
    kind = "EndpointSlice",
    metadata = { generateName = service_name .. "-", namespace = namespace, labels = labels },
    addressType = address_type,
    endpoints = host.json.array {},
    ports = ports,
  }
end


local function key_for(entry, manager)
  local labels = entry and entry.labels or NONE
  return labels[MANAGED_BY] == manager and labels[SERVICE_NAME] and entry.namespace .. "/" .. labels[SERVICE_NAME]
end


--- For `watches` of a controller whose keys are those of Services: a slice that it keeps was changed, or somebody else
--- changed its labels.
function M.watches(manager)
  return function(event)
    if event.id ~= ID then
      return nil
    end
    local now, before = key_for(event.entry, manager), key_for(event.previous, manager)
    local keys = { now or nil }
    keys[#keys + 1] = before ~= now and before or nil
    return keys
  end
end


--- Returns true if an object is among the owners of a slice.
function M.is_owned(slice, owner)
  for _, reference in ipairs(slice.metadata.ownerReferences or NONE) do
    if reference.uid == owner.metadata.uid then
      return true
    end
  end
  return false
end


--- A text that is the same for equal lists of ports, whatever their order.
function M.key_of(ports)
  local parts = {}
  for i, port in ipairs(ports) do
    parts[i] = ("%s %s %s %s"):format(port.name or "", port.port or "", port.protocol or "", port.appProtocol or "")
  end
  table.sort(parts)
  return table.concat(parts, "\n")
end


--- Puts slices together that have the same ports. @return table see key_of → list
function M.by_ports(slices)
  local by_key = {}
  for _, slice in ipairs(slices) do
    local key = M.key_of(slice.ports)
    by_key[key] = by_key[key] or {}
    table.insert(by_key[key], slice)
  end
  return by_key
end


--- A text that is the same for endpoints with the same addresses, host name and pod: one may take the other's place.
function M.id_of(endpoint)
  local target = endpoint.targetRef or NONE
  return table.concat({
    table.concat(endpoint.addresses, ","), endpoint.hostname or "", target.namespace or "", target.name or "",
  }, " ")
end


--- Returns true if two endpoints with the same id are alike in all else that controllers write.
function M.are_alike(one, other)
  return one.nodeName == other.nodeName and one.zone == other.zone
    and host.json.equal(one.conditions or NONE, other.conditions or NONE)
    and host.json.equal(one.targetRef or NONE, other.targetRef or NONE)
end


--- Nothing is to be written yet. @return table { create =, update =, delete = lists of slices }
function M.changes()
  return { create = {}, update = {}, delete = {} }
end


--- Adds the slices of all lists to those to be deleted. @param lists table
function M.drop(changes, lists)
  for _, slices in pairs(lists) do
    table.move(slices, 1, #slices, #changes.delete + 1, changes.delete)
  end
end


-- A slice of the owner's that would be deleted becomes one that would be made.
local function recycle(changes, owner)
  for i = #changes.delete, 1, -1 do
    local old, new = changes.delete[i], changes.create[#changes.create]
    if new and new.addressType == old.addressType and M.is_owned(old, owner) then
      new.metadata.name = old.metadata.name
      table.insert(changes.update, table.remove(changes.create))
      table.remove(changes.delete, i)
    end
  end
end


-- Kubernetes' controllers write in protobuf, which has no empty lists.
local function leave_out_empty(slice)
  slice.endpoints, slice.ports = slice.endpoints[1] and slice.endpoints, slice.ports[1] and slice.ports
  return slice
end


--- Writes what has changed. New slices are the owner's; none are made for an owner that is about to go.
function M.write(api, changes, owner)
  recycle(changes, owner)
  for _, slice in ipairs(owner.metadata.deletionTimestamp and NONE or changes.create) do
    api.create(leave_out_empty(slice), owner)
  end
  for _, slice in ipairs(changes.update) do
    if not slice.metadata.ownerReferences then
      api.own(slice, owner)
    end
    api.replace(leave_out_empty(slice))
  end
  for _, slice in ipairs(changes.delete) do
    api.delete(slice)
  end
end


return M
