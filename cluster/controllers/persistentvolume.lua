--- PersistentVolumeClaims: each gets an existing volume that fits, or else a new one: a folder of this machine, which
--- is deleted with the claim.
---
--- Rules: kubernetes/pkg/controller/volume/persistentvolume/pv_controller.go (syncClaim); the folders are those of a
--- provisioner such as rancher's local-path.
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local match = require "cluster.controllers.persistentvolume_match"
local volumes = require "cluster.controllers.persistentvolume_folders"

local M = {}

local BIND_COMPLETED, BOUND_BY = "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"


local function reference_to(claim)
  local meta = claim.metadata
  return {
    apiVersion = "v1", kind = "PersistentVolumeClaim", name = meta.name, namespace = meta.namespace, uid = meta.uid,
    resourceVersion = meta.resourceVersion,
  }
end


local function new_volume(claim, name, folders)
  local volume = {
    apiVersion = "v1",
    kind = "PersistentVolume",
    metadata = { name = name, annotations = { [BOUND_BY] = "yes" } },
    spec = {
      claimRef = reference_to(claim),
      capacity = { storage = claim.spec.resources.requests.storage },
      accessModes = claim.spec.accessModes,
      persistentVolumeReclaimPolicy = "Delete",
      storageClassName = claim.spec.storageClassName,
      hostPath = { path = folders.path .. "/" .. name, type = "DirectoryOrCreate" },
    },
  }
  volumes.sign(volume)
  return volume
end


-- Says something about a claim that does not get what it asks for, once.
local function event_once(api, claim, waiting, type, reason, message)
  local key = claim.metadata.namespace .. "/" .. claim.metadata.name
  if waiting[key] ~= message then
    waiting[key] = message
    api.event(claim, type, reason, message)
  end
end


local function reserve(api, volume, claim)
  local ref = volume.spec.claimRef
  if ref and ref.uid == claim.metadata.uid then
    return volume
  end
  return api.patch(volume, {
    metadata = { annotations = not ref and { [BOUND_BY] = "yes" } or nil },
    spec = { claimRef = reference_to(claim) },
  })
end


-- A folder grows with what is asked of it.
local function grow(api, volume, claim, folders)
  if match.is_large_enough(volume, claim) or not folders:is_ours(volume) then
    return volume
  end
  return api.patch(volume, { spec = { capacity = { storage = claim.spec.resources.requests.storage } } })
end


local function bind(api, claim, volume, folders)
  volume = grow(api, reserve(api, volume, claim), claim, folders)
  local meta, is_named = claim.metadata, claim.spec.volumeName ~= nil
  if not (meta.annotations or {})[BIND_COMPLETED] then
    claim = api.patch(claim, {
      metadata = { annotations = { [BIND_COMPLETED] = "yes", [BOUND_BY] = not is_named and "yes" or nil } },
      spec = { volumeName = volume.metadata.name },
    })
  end
  volumes.set_phase(api, volume, "Bound")
  api.write_status(claim, {
    phase = "Bound",
    accessModes = volume.spec.accessModes,
    capacity = host.json.copy(volume.spec.capacity),
  })
end


-- Why no folder will do for a claim, or nil.
local function unlike_folders(spec)
  if spec.selector then
    return "claim.Spec.Selector is not supported"
  elseif spec.volumeMode == "Block" then
    return "volumes here are folders; volumeMode Block cannot be had"
  elseif spec.dataSource or spec.dataSourceRef then
    return "volumes here are new folders; none is made from a data source"
  elseif spec.volumeAttributesClassName then
    return ("volumeattributesclass.storage.k8s.io %q not found"):format(spec.volumeAttributesClassName)
  end
end


local function provision(api, claim, folders, waiting)
  local name, why = "pvc-" .. claim.metadata.uid, unlike_folders(claim.spec)
  if claim.spec.storageClassName == "" then
    event_once(api, claim, waiting, "Normal", "FailedBinding",
      "no persistent volumes available for this claim and no storage class is set")
  elseif why then
    event_once(api, claim, waiting, "Warning", "ProvisioningFailed", why)
  else
    local ok, problem = folders:record(name)
    if not ok then
      error(("the volume %s cannot be recorded: %s"):format(name, problem), 0)
    end
    local volume = api.create(new_volume(claim, name, folders))
    api.event(claim, "Normal", "ProvisioningSucceeded", "Successfully provisioned volume " .. volume.metadata.name)
    bind(api, claim, volume, folders)
  end
end


-- The volume that the claim names, if it may have it; why not otherwise.
local function bind_named(api, claim, folders, waiting)
  local name = claim.spec.volumeName
  local volume = api.get("", "v1", "persistentvolumes", nil, name)
  if not volume then
    return
  end
  local is_free = not volume.spec.claimRef
  local why = is_free and match.mismatch(volume, claim)
  if why then
    why = ("Cannot bind to requested volume %q: %s"):format(name, why)
    event_once(api, claim, waiting, "Warning", "VolumeMismatch", why)
  elseif not is_free and not match.is_for(volume, claim) then
    why = ("volume %q already bound to a different claim."):format(name)
    event_once(api, claim, waiting, "Warning", "FailedBinding", why)
  else
    bind(api, claim, volume, folders)
  end
end


local function lose(api, claim, reason, message)
  if claim.status.phase ~= "Lost" then
    api.write_status(claim, { phase = "Lost" })
    api.event(claim, "Warning", reason, message)
  end
end


-- Looks after a claim that has had a volume.
local function keep(api, claim, folders)
  local name = claim.spec.volumeName
  local volume = name and api.get("", "v1", "persistentvolumes", nil, name)
  if not volume then
    lose(api, claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
  elseif volume.spec.claimRef and volume.spec.claimRef.uid ~= claim.metadata.uid then
    lose(api, claim, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
  else
    bind(api, claim, volume, folders)
  end
end


-- @param waiting table what claims that wait for a volume were told, by key
local function reconcile(api, claim, folders, waiting)
  local meta = claim.metadata
  local key = meta.namespace .. "/" .. meta.name
  if (meta.annotations or {})[BIND_COMPLETED] then
    waiting[key] = nil
    return keep(api, claim, folders)
  elseif meta.deletionTimestamp then
    return
  end
  waiting[key] = waiting[key] or ""
  if claim.spec.volumeName then
    return bind_named(api, claim, folders, waiting)
  end
  local best = match.best(api.peek("", "v1", "persistentvolumes"), claim)
  local volume = best and api.get("", "v1", "persistentvolumes", nil, best.metadata.name)
  if volume then
    return bind(api, claim, volume, folders)
  end
  return provision(api, claim, folders, waiting)
end


-- The claims that a change of a volume may concern: those that wait, and the one that loses it.
local function concerned(entry, is_gone, waiting)
  local keys = {}
  for key in pairs(waiting) do
    keys[#keys + 1] = key
  end
  local ref = is_gone and host.json.decode(entry.text).spec.claimRef
  if ref then
    keys[#keys + 1] = ref.namespace .. "/" .. ref.name
  end
  table.sort(keys)
  return keys
end


--- Starts the controller.
--- @param folders table where volumes are: see persistentvolume_folders.open
function M.start(server, folders)
  local waiting = {}
  server.store:subscribe(function(event)
    if event.type == "DELETED" then
      waiting[event.entry.namespace .. "/" .. event.entry.name] = nil
    end
  end, { persistentvolumeclaims = true })
  volumes.start(server, folders)
  controller.start(server, {
    name = "persistent-volume-binder",
    kind = { "", "v1", "PersistentVolumeClaim" },
    maps = {
      persistentvolumes = function(entry, _, is_gone)
        return concerned(entry, is_gone, waiting)
      end,
    },
    reconcile = function(api, claim)
      return reconcile(api, claim, folders, waiting)
    end,
  })
end


return M
