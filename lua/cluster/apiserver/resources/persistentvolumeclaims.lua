--- Claims of persistent volumes; controllers/claims.lua binds them.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidatePersistentVolumeClaim),
--- pkg/registry/core/persistentvolumeclaim/strategy.go, plugin/pkg/admission/storage/storageobjectinuseprotection.
local cells = require "cluster.apiserver.tables.cells.volume"
local claim = require "cluster.apiserver.resources.claim"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local protection = require "cluster.apiserver.resources.protection"
local quantity = require "cluster.apiserver.quantity"
local workload = require "cluster.apiserver.resources.workload"


local function defaults(object)
  object.spec.volumeMode = object.spec.volumeMode or "Filesystem"
  object.status.phase = object.status.phase or "Pending"
end


local function prepare_create(object)
  object.status = { phase = "Pending" }
  protection.add(object, "persistentvolumeclaims")
end


local function validate(object)
  local errors = {}
  claim.validate(object.spec, "spec", errors)
  return errors
end


local function warnings(object)
  local text = object.spec.resources.requests.storage
  local amount = quantity.parse(text)
  if amount and not quantity.is_whole(amount) then
    return { ('spec.resources.requests[storage]: fractional byte value "%s" is invalid, must be an integer'):format(
      text) }
  end
  return {}
end


local function storage(amounts)
  return quantity.parse((amounts or {}).storage or "0") or quantity.parse "0"
end


-- A claim may become smaller as long as it has not got what it asks for.
local function check_size(new, old, errors)
  local size = storage(new.spec.resources.requests)
  if quantity.compare(size, storage(old.spec.resources.requests)) < 0
    and quantity.compare(size, storage(old.status.capacity)) <= 0 then
    errors[#errors + 1] = field.forbidden("spec.resources.requests.storage",
      "field can not be less than status.capacity")
  end
end


local function validate_update(new, old)
  local errors = validate(new)
  local spec, before = host.json.copy(new.spec), host.json.copy(old.spec)
  before.volumeName = before.volumeName or spec.volumeName
  if new.status.phase == "Bound" then
    spec.resources.requests.storage = before.resources.requests.storage
    spec.volumeAttributesClassName = before.volumeAttributesClassName
  end
  if not host.json.equal(spec, before) then
    errors[#errors + 1] = field.forbidden("spec",
      "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims")
  end
  check_size(new, old, errors)
  return errors
end


return {
  spec_changed = false,
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  warnings = warnings,
  validate = validate, validate_update = validate_update,
  cells = cells.claim,
}
