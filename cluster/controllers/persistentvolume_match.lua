--- Which of the existing volumes a claim gets.
---
--- Rules: component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume, IsVolumeBoundToClaim),
--- kubernetes/pkg/controller/volume/persistentvolume/pv_controller.go (checkVolumeSatisfyClaim).
local label_selector = require "cluster.apiserver.selector.label_selector"
local quantity = require "cluster.quantity"

local M = {}


local function size_of(amounts)
  return quantity.parse((amounts or {}).storage or "0") or quantity.parse "0"
end


--- Returns true if the volume holds as much as the claim asks for.
function M.is_large_enough(volume, claim)
  return quantity.compare(size_of(volume.spec.capacity), size_of((claim.spec.resources or {}).requests)) >= 0
end


local function has_modes(volume, claim)
  local offered = {}
  for _, mode in ipairs(volume.spec.accessModes) do
    offered[mode] = true
  end
  for _, mode in ipairs(claim.spec.accessModes) do
    if not offered[mode] then
      return false
    end
  end
  return true
end


--- Returns true if the volume is bound to this claim by its uid, or reserved for it by its name.
function M.is_for(volume, claim)
  local ref = volume.spec.claimRef
  return ref ~= nil and ref.name == claim.metadata.name and ref.namespace == claim.metadata.namespace
    and (not ref.uid or ref.uid == "" or ref.uid == claim.metadata.uid)
end


--- Why the claim cannot have a volume that it asks for by name, or nil.
function M.mismatch(volume, claim)
  if volume.metadata.deletionTimestamp then
    return ("the volume is marked for deletion %q"):format(volume.metadata.name)
  elseif not M.is_large_enough(volume, claim) then
    return "requested PV is too small"
  elseif (volume.spec.storageClassName or "") ~= (claim.spec.storageClassName or "") then
    return "storageClassName does not match"
  elseif (volume.spec.volumeAttributesClassName or "") ~= (claim.spec.volumeAttributesClassName or "") then
    return "volumeAttributesClassName does not match"
  elseif volume.spec.volumeMode ~= claim.spec.volumeMode then
    return "incompatible volumeMode"
  elseif not has_modes(volume, claim) then
    return "incompatible accessMode"
  end
end


local function is_free(volume, claim)
  local is_met = not claim.spec.selector or label_selector.match(claim.spec.selector, volume.metadata.labels)
  return not volume.spec.claimRef and volume.status.phase == "Available" and is_met
    and not M.mismatch(volume, claim)
end


--- The volume that is reserved for the claim, or else the smallest that will do, or nil.
function M.best(volumes, claim)
  local best
  for _, volume in ipairs(volumes) do
    if M.is_for(volume, claim) and M.is_large_enough(volume, claim) and not volume.metadata.deletionTimestamp
      and volume.spec.volumeMode == claim.spec.volumeMode then
      return volume
    elseif is_free(volume, claim)
      and not (best and quantity.compare(size_of(best.spec.capacity), size_of(volume.spec.capacity)) <= 0) then
      best = volume
    end
  end
  return best
end


return M
