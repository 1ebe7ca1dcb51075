--- ResourceClaims. They are stored; nothing here allocates devices, so a pod that names one waits.
---
--- Rules: kubernetes/pkg/apis/resource/validation/validation.go (ValidateResourceClaim),
--- pkg/registry/resource/resourceclaim/strategy.go, pkg/registry/resource/utils.go.
local age = require "cluster.apiserver.tables.age"
local allocation = require "cluster.apiserver.resources.devices.allocation"
local check = require "cluster.apiserver.resources.check"
local metadata = require "cluster.apiserver.metadata"
local request = require "cluster.apiserver.resources.devices.request"
local workload = require "cluster.apiserver.resources.workload"


local function validate(object, _, context)
  local errors = request.check_admin(object.spec.devices, context)
  request.check(object.spec.devices, "spec.devices", errors)
  return errors
end


local function validate_update(new, old)
  local errors = {}
  check.immutable_value(new.spec, old.spec, "spec", errors)
  return errors
end


local function prepare_status(new, old)
  metadata.keep(new.metadata, old.metadata)
  new.spec = old.spec
  allocation.drop_released(new.status, old.status)
end


local function state(obj)
  local is_deleted, status = obj.metadata.deletionTimestamp ~= nil, obj.status or {}
  local words = { is_deleted and "deleted" or nil }
  if status.allocation then
    words[#words + 1] = "allocated"
    words[#words + 1] = status.reservedFor and "reserved" or nil
  elseif not is_deleted then
    words[#words + 1] = "pending"
  end
  return table.concat(words, ",")
end


return {
  returns_deleted = true,
  spec_changed = false,
  defaults = function(object)
    request.defaults(object.spec.devices)
  end,
  prepare_create = function(object)
    object.status = {}
  end,
  prepare_update = workload.keep_status, prepare_status = prepare_status,
  validate = validate, validate_update = validate_update, validate_status = allocation.validate,
  cells = function(obj, now)
    return { obj.metadata.name, state(obj), age.of(obj, now) }
  end,
}
