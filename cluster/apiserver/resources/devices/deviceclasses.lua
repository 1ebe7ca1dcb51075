--- DeviceClasses. They are stored; nothing here allocates devices.
---
--- Rules: kubernetes/pkg/apis/resource/validation/validation.go (ValidateDeviceClass),
--- pkg/registry/resource/deviceclass/strategy.go.
local age = require "cluster.apiserver.tables.age"
local common = require "cluster.apiserver.resources.devices.common"
local field = require "cluster.apiserver.field"
local request = require "cluster.apiserver.resources.devices.request"
local resource_names = require "cluster.apiserver.resources.resource_names"
local selector = require "cluster.apiserver.resources.devices.selector"

local CONFIG_MAX = 32


local function validate(object)
  local errors, spec = {}, object.spec
  selector.check(spec.selectors, "spec.selectors", errors)
  common.each(spec.config, CONFIG_MAX, "spec.config", errors, function(config, at)
    request.check_config(config, at, errors)
  end)
  local name = spec.extendedResourceName
  if name and not resource_names.is_extended(name) then
    errors[#errors + 1] = field.invalid("spec.extendedResourceName", name, "must be a valid extended resource name")
  end
  return errors
end


return {
  validate = validate, validate_update = validate,
  returns_deleted = true,
  cells = function(obj, now)
    return { obj.metadata.name, age.of(obj, now) }
  end,
}
