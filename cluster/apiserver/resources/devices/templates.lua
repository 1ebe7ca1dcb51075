--- ResourceClaimTemplates. They are stored; nothing here makes claims of them.
---
--- Rules: kubernetes/pkg/apis/resource/validation/validation.go (ValidateResourceClaimTemplate),
--- pkg/registry/resource/resourceclaimtemplate/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local metadata = require "cluster.apiserver.metadata"
local request = require "cluster.apiserver.resources.devices.request"


local function check_spec(spec)
  local errors, meta = {}, spec.metadata or {}
  metadata.check_template(meta, "spec.metadata", errors)
  request.check(spec.spec.devices, "spec.spec.devices", errors)
  return errors
end


local function validate(object, _, context)
  local errors = request.check_admin(object.spec.spec.devices, context)
  return check.append(errors, check_spec(object.spec))
end


local function validate_update(new, old)
  local errors = check_spec(new.spec)
  check.immutable_value(new.spec, old.spec, "spec", errors)
  return errors
end


return {
  spec_changed = false,
  defaults = function(object)
    request.defaults(object.spec.spec.devices)
  end,
  validate = validate, validate_update = validate_update,
  returns_deleted = true,
  cells = function(obj, now)
    return { obj.metadata.name, age.of(obj, now) }
  end,
}
