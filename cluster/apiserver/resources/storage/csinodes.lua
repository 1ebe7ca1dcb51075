--- CSINodes.
---
--- Rules: kubernetes/pkg/apis/storage/validation/validation.go (ValidateCSINode),
--- pkg/registry/storage/csinode/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local common = require "cluster.apiserver.resources.storage.common"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"

local ID_MAX = 256


local function check_keys(keys, path, errors)
  local seen = {}
  for _, key in ipairs(check.list(keys)) do
    if key == "" then
      errors[#errors + 1] = field.required(path, "")
    end
    if seen[key] then
      errors[#errors + 1] = field.duplicate(path, key)
    end
    seen[key] = true
    check.each(errors, path, key, names.qualified(key))
  end
end


local function check_driver(driver, seen, path, errors)
  common.check_driver(driver.name, path .. ".name", errors)
  if driver.nodeID == "" then
    errors[#errors + 1] = field.required(path .. ".nodeID", "")
  elseif #driver.nodeID > ID_MAX then
    errors[#errors + 1] = field.invalid(path .. ".nodeID", driver.nodeID,
      ("must be %d characters or less"):format(ID_MAX))
  end
  check.not_negative(driver.allocatable and driver.allocatable.count, path .. ".allocatable.count", errors)
  if seen[driver.name] then
    errors[#errors + 1] = field.duplicate(path .. ".name", driver.name)
  end
  seen[driver.name] = true
  check_keys(driver.topologyKeys, path, errors)
end


local function validate(object)
  local errors, seen = {}, {}
  for i, driver in ipairs(check.list(object.spec.drivers)) do
    check_driver(driver, seen, ("spec.drivers[%d]"):format(i - 1), errors)
  end
  return errors
end


-- A driver as its internal type in Go is printed, without what may change.
local function driver_text(driver)
  return check.go_struct {
    { "Name", driver.name }, { "NodeID", driver.nodeID }, { "TopologyKeys", driver.topologyKeys }, { "Allocatable" },
  }
end


local function validate_update(new, old)
  local errors = validate(new)
  for _, before in ipairs(check.list(old.spec.drivers)) do
    for _, driver in ipairs(check.list(new.spec.drivers)) do
      if driver.name == before.name and driver_text(driver) ~= driver_text(before) then
        errors[#errors + 1] = check.invalid_text("spec.drivers", driver_text(driver), "field is immutable")
      end
    end
  end
  return errors
end


return {
  returns_deleted = true,
  spec_changed = false,
  unconditional_update = false,
  validate = validate, validate_update = validate_update,
  cells = function(obj, now)
    return { obj.metadata.name, #check.list(obj.spec.drivers), age.of(obj, now) }
  end,
}
