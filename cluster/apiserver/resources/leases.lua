--- Leases.
---
--- Rules: kubernetes/pkg/apis/coordination/validation/validation.go, pkg/registry/coordination/lease/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"


-- Leases that are led in a coordinated way are not, by default, on a real server either.
local function drop_disabled(object)
  object.spec.strategy, object.spec.preferredHolder = nil, nil
end


local function validate(object)
  local errors, spec = {}, object.spec
  if spec.leaseDurationSeconds and spec.leaseDurationSeconds <= 0 then
    errors[#errors + 1] = field.invalid("spec.leaseDurationSeconds", spec.leaseDurationSeconds,
      "must be greater than 0")
  end
  check.not_negative(spec.leaseTransitions, "spec.leaseTransitions", errors)
  return errors
end


local function cells(obj, now)
  return { obj.metadata.name, obj.spec and obj.spec.holderIdentity or "", age.of(obj, now) }
end


return {
  spec_changed = false, create_on_update = true, unconditional_update = false,
  prepare_create = drop_disabled, prepare_update = drop_disabled,
  validate = validate, validate_update = validate,
  cells = cells,
}
