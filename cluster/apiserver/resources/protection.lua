--- Volumes, claims, and the classes of their attributes are not deleted while they are in use: each gets a finalizer
--- when it is created. The finalizer is removed when the object is being deleted and no other object needs it any more.
---
--- Rules: kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection,
--- kubernetes/pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
local host = require "cluster.host"

local M = {}

local CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
local CLASSES = "volumeattributesclasses.storage.k8s.io"
local FINALIZERS = {
  [CLAIMS] = "kubernetes.io/pvc-protection", [VOLUMES] = "kubernetes.io/pv-protection",
  [CLASSES] = "kubernetes.io/vac-protection",
}
local NONE = {}
local CALLER = {
  user = { name = "system:kube-controller-manager", groups = { "system:masters", "system:authenticated" } },
  user_agent = "kube-controller-manager",
}


--- Adds the finalizer of its kind to a new object, unless it is there. `id`: that of the resource.
function M.add(object, id)
  local finalizer, list = FINALIZERS[id], object.metadata.finalizers or host.json.array {}
  for _, other in ipairs(list) do
    if other == finalizer then
      return
    end
  end
  list[#list + 1] = finalizer
  object.metadata.finalizers = list
end


-- True if a pod that has a node mounts the claim, by its name or as an ephemeral volume. A pod that has ended still
-- does, until it is deleted.
local function mounts(pod, claim)
  if not pod.spec.nodeName then
    return false
  end
  for _, volume in ipairs(pod.spec.volumes or NONE) do
    local named = volume.persistentVolumeClaim
    if named and named.claimName == claim or volume.ephemeral and pod.metadata.name .. "-" .. volume.name == claim then
      return true
    end
  end
  return false
end


-- True if a volume or a claim has a class of attributes, or is to get it.
local function has_class(object, class)
  local status = object.status or NONE
  return object.spec.volumeAttributesClassName == class or status.currentVolumeAttributesClassName == class
    or (status.modifyVolumeStatus or NONE).targetVolumeAttributesClassName == class
end


local function is_class_used(server, class)
  local used = false
  for _, id in ipairs { CLAIMS, VOLUMES } do
    server.store:collection(id):each(nil, nil, function(entry)
      used = used or has_class(host.json.decode(entry.text), class)
    end)
  end
  return used
end


local function is_used(server, id, object)
  if id == VOLUMES then
    return object.status.phase == "Bound"
  elseif id == CLASSES then
    return is_class_used(server, object.metadata.name)
  end
  local used = false
  server.store:collection("pods"):each(object.metadata.namespace, nil, function(entry)
    used = used or mounts(host.json.decode(entry.text), object.metadata.name)
  end)
  return used
end


local function path_of(id, entry)
  if id == CLASSES then
    return "/apis/storage.k8s.io/v1/volumeattributesclasses/" .. entry.name
  end
  local folder = entry.namespace ~= "" and "namespaces/" .. entry.namespace .. "/" or ""
  return "/api/v1/" .. folder .. id .. "/" .. entry.name
end


-- Lets one object go that is to be deleted and not used.
local function release(server, id, entry)
  local object = host.json.decode(entry.text)
  local finalizers = host.json.array {}
  for _, finalizer in ipairs(object.metadata.finalizers or NONE) do
    if finalizer ~= FINALIZERS[id] then
      finalizers[#finalizers + 1] = finalizer
    end
  end
  if #finalizers == #(object.metadata.finalizers or NONE) or is_used(server, id, object) then
    return
  end
  object.metadata.finalizers = finalizers
  server:call("PUT", path_of(id, entry), object, CALLER)
end


local function release_all(server)
  for _, id in ipairs { CLAIMS, VOLUMES, CLASSES } do
    local waiting = {}
    server.store:collection(id):each(nil, nil, function(entry)
      waiting[#waiting + 1] = entry.deleting and entry or nil
    end)
    for _, entry in ipairs(waiting) do
      release(server, id, entry)
    end
  end
end


--- Looks after the volumes and claims of a server from now on.
function M.start(server)
  local planned = false
  local function plan()
    if planned then
      return
    end
    planned = true
    host.defer(function()
      planned = false
      release_all(server)
    end)
  end
  server:events(function(event)
    local pod_changed = event.id == "pods" and event.type ~= "ADDED" and server.store:collection(CLAIMS):size(nil) > 0
    local class_left = (event.id == CLAIMS or event.id == VOLUMES) and event.type ~= "ADDED"
      and server.store:collection(CLASSES):size(nil) > 0
    if pod_changed or class_left or FINALIZERS[event.id] and event.entry.deleting and event.type ~= "DELETED" then
      plan()
    end
  end)
  plan()
end


return M
