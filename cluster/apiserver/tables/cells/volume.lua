--- Cells of volumes and claims to them.
--- Rules: kubernetes/pkg/printers/internalversion/printers.go, kubernetes/pkg/apis/core/helper/helpers.go.
local age = require "cluster.apiserver.tables.age"
local text = require "cluster.apiserver.tables.text"

local M = {}

local MODES = {
  { "ReadWriteOnce", "RWO" }, { "ReadOnlyMany", "ROX" }, { "ReadWriteMany", "RWX" }, { "ReadWriteOncePod", "RWOP" },
}
local CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


local function modes(list)
  local has, short = {}, {}
  for _, mode in ipairs(list or {}) do
    has[mode] = true
  end
  for _, pair in ipairs(MODES) do
    short[#short + 1] = has[pair[1]] and pair[2] or nil
  end
  return text.join(short, "")
end


local function phase(obj)
  return obj.metadata.deletionTimestamp and "Terminating" or obj.status and obj.status.phase or ""
end


local function class(obj)
  local annotations = obj.metadata.annotations or {}
  return annotations[CLASS_ANNOTATION] or obj.spec.storageClassName or ""
end


--- @return table cells in the order of kinds.lua
function M.volume(obj, now)
  local spec, claim = obj.spec, obj.spec.claimRef
  return {
    obj.metadata.name, spec.capacity and spec.capacity.storage or "0", modes(spec.accessModes),
    spec.persistentVolumeReclaimPolicy or "", phase(obj),
    claim and (claim.namespace or "") .. "/" .. (claim.name or "") or "", class(obj),
    spec.volumeAttributesClassName or "<unset>", obj.status and obj.status.reason or "", age.of(obj, now),
    spec.volumeMode or "<unset>",
  }
end


--- @return table cells in the order of kinds.lua
function M.claim(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local bound = spec.volumeName and spec.volumeName ~= ""
  return {
    obj.metadata.name, phase(obj), spec.volumeName or "",
    bound and (status.capacity and status.capacity.storage or "0") or "", bound and modes(status.accessModes) or "",
    class(obj), spec.volumeAttributesClassName or "<unset>", age.of(obj, now), spec.volumeMode or "<unset>",
  }
end


return M
