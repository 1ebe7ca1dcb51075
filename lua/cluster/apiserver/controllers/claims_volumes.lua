--- PersistentVolumes: their phases, and what happens to them after their claims are deleted.
---
--- Rules: kubernetes/pkg/controller/volume/persistentvolume/pv_controller.go (syncVolume, reclaimVolume).
local host = require "cluster.host"
local runner = require "cluster.apiserver.controllers.runner"

local M = {}

local PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
local PROVISIONER = "moonloop.dev/folder"


--- Marks a volume that is to be created as one of ours.
function M.sign(volume)
  volume.metadata.annotations = volume.metadata.annotations or {}
  volume.metadata.annotations[PROVISIONED_BY] = PROVISIONER
end


--- Whether the volume is a folder that was made here, and not one that somebody brought.
function M.is_ours(volume)
  return (volume.metadata.annotations or {})[PROVISIONED_BY] == PROVISIONER
end


--- Writes the phase of a volume where it differs.
function M.set_phase(api, volume, phase, message)
  local status = host.json.copy(volume.status or {})
  status.phase, status.message = phase, message
  api.write_status(volume, status)
end


-- What nobody here can do is said in the status.
local function fail(api, volume, reason, message)
  if volume.status.phase ~= "Failed" then
    M.set_phase(api, volume, "Failed", message)
    api.event(volume, "Warning", reason, message)
  end
end


local function reclaim(api, volume, remove)
  local policy = volume.spec.persistentVolumeReclaimPolicy
  if policy == "Delete" and M.is_ours(volume) then
    remove(volume.spec.hostPath.path)
    api.delete(volume)
  elseif policy == "Delete" then
    fail(api, volume, "VolumeFailedDelete", "only volumes that were made here are deleted")
  elseif policy == "Recycle" then
    fail(api, volume, "VolumeFailedRecycle", "no volume is recycled here")
  end
end


local function reconcile(api, volume, remove)
  local ref = volume.spec.claimRef
  if not ref or not ref.uid or ref.uid == "" then
    M.set_phase(api, volume, "Available")
    return
  end
  local claim = api.get("", "v1", "persistentvolumeclaims", ref.namespace, ref.name)
  if not claim or claim.metadata.uid ~= ref.uid then
    local is_going = volume.status.phase == "Released" and volume.metadata.deletionTimestamp
    if volume.status.phase ~= "Failed" then
      M.set_phase(api, volume, "Released")
    end
    if not is_going then
      reclaim(api, volume, remove)
    end
  elseif claim.spec.volumeName == volume.metadata.name then
    M.set_phase(api, volume, "Bound")
  end
end


--- Starts the controller.
--- @param remove fun(path: string)  removes a folder
function M.start(server, remove)
  runner.start(server, {
    name = "persistent-volume-reclaimer",
    kind = { "", "v1", "PersistentVolume" },
    maps = {
      persistentvolumeclaims = function(entry)
        local volume = host.json.decode(entry.text).spec.volumeName
        return volume and { "/" .. volume } or {}
      end,
    },
    reconcile = function(api, volume)
      return reconcile(api, volume, remove)
    end,
  })
end


return M
