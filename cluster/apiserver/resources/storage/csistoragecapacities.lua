--- CSIStorageCapacities.
---
--- Rules: kubernetes/pkg/apis/storage/validation/validation.go (ValidateCSIStorageCapacity),
--- pkg/registry/storage/csistoragecapacity/strategy.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local lists = require "cluster.apiserver.resources.resource_lists"
local names = require "cluster.names"
local selectors = require "cluster.apiserver.resources.selectors"


local function validate(object)
  local errors = {}
  selectors.validate(object.nodeTopology, "nodeTopology", errors)
  check.each(errors, "storageClassName", object.storageClassName, names.subdomain(object.storageClassName))
  if object.capacity and lists.compare(object.capacity, "0") < 0 then
    errors[#errors + 1] = field.invalid("capacity", object.capacity, "must be greater than or equal to 0")
  end
  return errors
end


local function validate_update(new, old)
  local errors = validate(new)
  check.immutable_value(new.nodeTopology, old.nodeTopology, "nodeTopology", errors)
  check.immutable_value(new.storageClassName, old.storageClassName, "storageClassName", errors)
  return errors
end


return {
  spec_changed = false,
  unconditional_update = false,
  columns = "",   -- kubectl could print others, but the server does not send them
  validate = validate, validate_update = validate_update,
}
