--- PersistentVolumes: their phases, what happens to them after their claims are deleted, and the folders of those that
--- were made here.
---
--- An object says nothing about whose a path is. A volume is ours when our own record has its name: a file in RECORD,
--- beside the folders. Only those folders are mounted in pods and removed, by their names in our folder.
---
--- Rules: kubernetes/pkg/controller/volume/persistentvolume/pv_controller.go (syncVolume, reclaimVolume).
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"

local M = {}

local PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
local PROVISIONER = "moonloop.dev/folder"
local RECORD, MODE = ".made", 384 -- 0600


--- Marks a volume that is to be created, for those who look at it.
function M.sign(volume)
  volume.metadata.annotations = volume.metadata.annotations or {}
  volume.metadata.annotations[PROVISIONED_BY] = PROVISIONER
end


local Folders = {}
Folders.__index = Folders


--- The folders of volumes, and the record of them.
--- @param path string where they are, absolute; the folder above it is there
function M.open(path)
  local base = assert(require("cluster.process").open_folder(path))
  return setmetatable({ path = path, base = base }, Folders)
end


--- Records a volume that is about to be made. @return true, or nil and why not
function Folders:record(name)
  local ok, why = self.base:make_folder(RECORD)
  if ok then
    ok, why = self.base:write(RECORD .. "/" .. name, "", MODE)
  end
  return ok, why
end


--- Makes the folder of a volume that is ours, unless it is there. @return true, or nil and why not
function Folders:ensure(name)
  return self.base:make_folder(name)
end


--- Returns true if the volume is a folder that was made here, false if somebody else made it.
function Folders:is_ours(volume)
  local name, source = volume.metadata.name, volume.spec.hostPath
  return source ~= nil and source.path:match "[^/]*$" == name and self.base:has(RECORD .. "/" .. name)
end


--- Removes the folder of a volume that is ours. @return true, or nil and why not
function Folders:remove(name)
  local ok, why = self.base:remove(name)
  if ok then
    ok, why = self.base:remove(RECORD .. "/" .. name)
  end
  return ok, why
end


-- Was a volume without a record made here? Its name is one that we gave, its claim exists and has it, and its folder is
-- one of ours and no link.
local function looks_like_ours(self, server, volume)
  local name, ref, source = volume.metadata.name, volume.spec.claimRef, volume.spec.hostPath
  if not (ref and ref.uid and source) or name ~= "pvc-" .. ref.uid or source.path:match "[^/]*$" ~= name
    or (volume.metadata.annotations or {})[PROVISIONED_BY] ~= PROVISIONER or not self.base:has_folder(name) then
    return false
  end
  local entry = server.store:get("persistentvolumeclaims", ref.namespace, ref.name)
  return entry ~= nil and entry.uid == ref.uid and host.json.decode(entry.text).spec.volumeName == name
end


local Nowhere = {}
Nowhere.__index = Nowhere


--- Volumes without folders, for pods that run nothing.
function M.nowhere()
  return setmetatable({ path = "/var/lib/moonloop/volumes", made = {} }, Nowhere)
end


function Nowhere:record(name)
  self.made[name] = true
  return true
end


function Nowhere:is_ours(volume)
  return self.made[volume.metadata.name] ~= nil
end


function Nowhere:remove(name)
  self.made[name] = nil
  return true
end


function Nowhere.adopt()
end


--- Makes the record of a folder that an older version left without one: once, before anybody can add a volume.
function Folders:adopt(server)
  if self.base:has(RECORD) then
    return
  end
  server.store:collection("persistentvolumes"):each(nil, nil, function(entry)
    local volume = host.json.decode(entry.text)
    if looks_like_ours(self, server, volume) then
      self:record(volume.metadata.name)
    end
  end)
  self.base:make_folder(RECORD)
end


--- Writes the phase of a volume where it differs.
function M.set_phase(api, volume, phase, message)
  local status = host.json.copy(volume.status or {})
  status.phase, status.message = phase, message
  api.write_status(volume, status)
end


-- Sets the phase Failed and sends an Event, unless the volume has that phase.
local function fail(api, volume, reason, message)
  if volume.status.phase ~= "Failed" then
    M.set_phase(api, volume, "Failed", message)
    api.event(volume, "Warning", reason, message)
  end
end


local function reclaim(api, volume, folders)
  local policy = volume.spec.persistentVolumeReclaimPolicy
  if policy == "Delete" and folders:is_ours(volume) then
    local ok, why = folders:remove(volume.metadata.name)
    if ok then
      api.delete(volume)
    else
      fail(api, volume, "VolumeFailedDelete", "its folder cannot be removed: " .. why)
    end
  elseif policy == "Delete" then
    fail(api, volume, "VolumeFailedDelete", "only volumes that were made here are deleted")
  elseif policy == "Recycle" then
    fail(api, volume, "VolumeFailedRecycle", "no volume is recycled here")
  end
end


local function reconcile(api, volume, folders)
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
      reclaim(api, volume, folders)
    end
  elseif claim.spec.volumeName == volume.metadata.name then
    M.set_phase(api, volume, "Bound")
  end
end


--- Starts the controller.
--- @param folders table see open
function M.start(server, folders)
  folders:adopt(server)
  controller.start(server, {
    name = "persistent-volume-reclaimer",
    kind = { "", "v1", "PersistentVolume" },
    maps = {
      persistentvolumeclaims = function(entry)
        local volume = host.json.decode(entry.text).spec.volumeName
        return volume and { "/" .. volume } or {}
      end,
    },
    reconcile = function(api, volume)
      return reconcile(api, volume, folders)
    end,
  })
end


return M
