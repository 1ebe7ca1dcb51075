--- PersistentVolumeClaims: each gets a volume of its own, a folder of this machine, which goes when the claim does.
---
--- Rules: kubernetes/pkg/controller/volume/persistentvolume/pv_controller.go; the folders are those of a provisioner
--- such as rancher's local-path.
local host = require "moonloop.host"
local runner = require "moonloop.apiserver.controllers.runner"

local M = {}

local PROVISIONER = "moonloop.dev/folder"


local function volume_name(claim)
  return "pvc-" .. claim.metadata.uid
end


local function new_volume(claim, folder)
  local meta, name = claim.metadata, volume_name(claim)
  return {
    apiVersion = "v1",
    kind = "PersistentVolume",
    metadata = { name = name, annotations = { ["pv.kubernetes.io/provisioned-by"] = PROVISIONER } },
    spec = {
      capacity = { storage = claim.spec.resources.requests.storage },
      accessModes = claim.spec.accessModes,
      persistentVolumeReclaimPolicy = "Delete",
      storageClassName = claim.spec.storageClassName,
      hostPath = { path = folder .. "/" .. name, type = "DirectoryOrCreate" },
      claimRef = {
        apiVersion = "v1", kind = "PersistentVolumeClaim", name = meta.name, namespace = meta.namespace, uid = meta.uid,
      },
    },
  }
end


local function bind(api, claim, volume)
  if not claim.spec.volumeName then
    claim = api.patch(claim, {
      metadata = { annotations = { ["pv.kubernetes.io/bind-completed"] = "yes" } },
      spec = { volumeName = volume.metadata.name },
    })
  end
  api.write_status(volume, { phase = "Bound" })
  api.write_status(claim, {
    phase = "Bound",
    accessModes = volume.spec.accessModes,
    capacity = host.json.copy(volume.spec.capacity),
  })
end


-- Whether the claim waits for a volume that somebody else makes.
local function is_for_others(claim)
  local named = claim.spec.volumeName
  return claim.metadata.deletionTimestamp or named and named ~= volume_name(claim) or claim.spec.selector
end


local function provision(api, claim, folder)
  if is_for_others(claim) then
    return
  elseif claim.spec.volumeMode == "Block" then
    api.event(claim, "Warning", "ProvisioningFailed", "volumes here are folders; volumeMode Block cannot be had")
    return
  end
  local volume = api.get("", "v1", "persistentvolumes", nil, volume_name(claim))
  if not volume then
    volume = api.create(new_volume(claim, folder))
    api.event(claim, "Normal", "ProvisioningSucceeded", "Successfully provisioned volume " .. volume.metadata.name)
  end
  bind(api, claim, volume)
end


-- Volumes made here go with their claims.
local function release(api, volume, remove)
  local owner, made_by = volume.spec.claimRef, (volume.metadata.annotations or {})["pv.kubernetes.io/provisioned-by"]
  if made_by ~= PROVISIONER or not owner then
    return
  end
  local claim = api.get("", "v1", "persistentvolumeclaims", owner.namespace, owner.name)
  if not claim or claim.metadata.uid ~= owner.uid then
    remove(volume.spec.hostPath.path)
    api.delete(volume)
  end
end


--- Starts the controller.
--- @param options table { folder = where volumes are, remove = function(path) that removes one }
function M.start(server, options)
  runner.start(server, {
    name = "persistent-volume-binder",
    kind = { "", "v1", "PersistentVolumeClaim" },
    reconcile = function(api, claim)
      return provision(api, claim, options.folder)
    end,
  })
  runner.start(server, {
    name = "persistent-volume-reclaimer",
    kind = { "", "v1", "PersistentVolume" },
    maps = {
      persistentvolumeclaims = function(entry)
        return { "/pvc-" .. entry.uid }
      end,
    },
    reconcile = function(api, volume)
      return release(api, volume, options.remove)
    end,
  })
end


return M
