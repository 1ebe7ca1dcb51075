--- Claims of persistent volumes; controllers/persistentvolume.lua binds them.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidatePersistentVolumeClaim),
--- pkg/registry/core/persistentvolumeclaim/strategy.go, plugin/pkg/admission/storage.
local cells = require "cluster.apiserver.tables.cells.volume"
local claim = require "cluster.apiserver.resources.claim"
local classes = require "cluster.apiserver.resources.default_class"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local limitranger = require "cluster.apiserver.resources.limitranger"
local protection = require "cluster.apiserver.resources.protection"
local quantity = require "cluster.quantity"
local workload = require "cluster.apiserver.resources.workload"

local OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
local DEFAULT_MARKS = { "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class" }


local function defaults(object)
  object.spec.volumeMode = object.spec.volumeMode or "Filesystem"
  object.status.phase = object.status.phase or "Pending"
end


-- A claim that says nothing of a class gets the default one, if there is one.
local function set_class(object, ctx)
  local spec = object.spec
  if not spec.storageClassName and not (object.metadata.annotations or {})[OLD_CLASS] then
    spec.storageClassName = classes.annotated(ctx, "storageclasses.storage.k8s.io", DEFAULT_MARKS)
  end
end


local function prepare_create(object, ctx)
  set_class(object, ctx)
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


-- Checks the bounds of LimitRanges, except for claims that are being deleted.
local function admit(new, old, ctx)
  if ctx.request.subresource or old and old.metadata.deletionTimestamp then
    return nil
  end
  return limitranger.check(new, ctx)
end


return {
  spec_changed = false,
  admit = admit,
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  warnings = warnings,
  validate = validate, validate_update = validate_update,
  cells = cells.claim,
}
