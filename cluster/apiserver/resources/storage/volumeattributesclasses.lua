--- VolumeAttributesClasses.
---
--- Rules: kubernetes/pkg/apis/storage/validation/validation.go (ValidateVolumeAttributesClass),
--- pkg/registry/storage/volumeattributesclass/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local common = require "cluster.apiserver.resources.storage.common"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local protection = require "cluster.apiserver.resources.protection"


local function validate(object)
  local errors = {}
  common.check_provisioner(object.driverName, "driverName", errors)
  common.check_parameters(object.parameters, false, errors)
  return errors
end


local function validate_update(new, old)
  local errors = {}
  if new.driverName ~= old.driverName then
    errors[#errors + 1] = field.forbidden("driverName", "updates to driverName are forbidden.")
  end
  if not host.json.equal(new.parameters or {}, old.parameters or {}) then
    errors[#errors + 1] = field.forbidden("parameters", "updates to parameters are forbidden.")
  end
  return check.append(errors, validate(new))
end


return {
  returns_deleted = true,
  spec_changed = false,
  prepare_create = function(object)
    protection.add(object, "volumeattributesclasses.storage.k8s.io")
  end,
  validate = validate, validate_update = validate_update,
  cells = function(obj, now)
    return { obj.metadata.name, obj.driverName, age.of(obj, now) }
  end,
}
