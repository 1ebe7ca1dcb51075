--- Persistent volumes; controllers/persistentvolume.lua binds them.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidatePersistentVolume),
--- pkg/registry/core/persistentvolume/strategy.go.
local cells = require "cluster.apiserver.tables.cells.volume"
local check = require "cluster.apiserver.resources.check"
local claim = require "cluster.apiserver.resources.claim"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local protection = require "cluster.apiserver.resources.protection"
local paths = require "cluster.apiserver.resources.pod.paths"
local workload = require "cluster.apiserver.resources.workload"

-- Tables of a spec that are no source of a volume.
local NO_SOURCE = { capacity = true, accessModes = true, claimRef = true, mountOptions = true, nodeAffinity = true }


local function defaults(object)
  local spec = object.spec
  object.status.phase = object.status.phase or "Pending"
  spec.persistentVolumeReclaimPolicy = spec.persistentVolumeReclaimPolicy or "Retain"
  spec.volumeMode = spec.volumeMode or "Filesystem"
  if spec.hostPath then
    spec.hostPath.type = spec.hostPath.type or ""
  end
end


local function prepare_create(object)
  object.status = { phase = "Pending", lastPhaseTransitionTime = host.timestamp() }
  protection.add(object, "persistentvolumes")
end


local function check_source(spec, errors)
  local count = 0
  for name, value in pairs(spec) do
    if type(value) == "table" and not NO_SOURCE[name] then
      count = count + 1
    end
  end
  if count == 0 then
    errors[#errors + 1] = field.required("spec", "must specify a volume type")
  elseif spec.hostPath and spec.hostPath.path == "" then
    errors[#errors + 1] = field.required("spec.hostPath.path", "")
  elseif spec.hostPath then
    paths.no_backsteps(spec.hostPath.path, "spec.hostPath.path", errors)
  end
end


local function check_capacity(capacity, errors)
  if not capacity then
    errors[#errors + 1] = field.required("spec.capacity", "")
  end
  if not (capacity and capacity.storage and next(capacity, next(capacity)) == nil) then
    errors[#errors + 1] = field.not_supported("spec.capacity", capacity or host.json.null, { "storage" })
  end
  for _, name in ipairs(check.sorted_keys(capacity)) do
    if name == "storage" then
      claim.check_size(capacity[name], "spec.capacity[storage]", errors)
    end
  end
end


local function validate(object)
  local errors, spec = {}, object.spec
  if #(spec.accessModes or {}) == 0 then
    errors[#errors + 1] = field.required("spec.accessModes", "")
  end
  claim.check_modes(spec.accessModes or {}, "spec.accessModes", errors)
  check_capacity(spec.capacity, errors)
  check.one_of(spec.persistentVolumeReclaimPolicy, { "Delete", "Recycle", "Retain" },
    "spec.persistentVolumeReclaimPolicy", errors)
  check_source(spec, errors)
  check.one_of(spec.volumeMode, { "Block", "Filesystem" }, "spec.volumeMode", errors)
  return errors
end


-- The instant of the last change of phase is the server's.
local function prepare_status(new, old)
  new.spec = old.spec
  if new.status.phase ~= old.status.phase then
    new.status.lastPhaseTransitionTime = host.timestamp()
  end
end


return {
  spec_changed = false,
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = workload.keep_status,
  prepare_status = prepare_status,
  validate = validate, validate_update = validate,
  cells = cells.volume,
}
