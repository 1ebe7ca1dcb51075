--- ResourceSlices: the devices that drivers tell of. They are stored; nothing here allocates devices.
---
--- Rules: kubernetes/pkg/apis/resource/validation/validation.go (ValidateResourceSlice),
--- pkg/registry/resource/resourceslice/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local common = require "cluster.apiserver.resources.devices.common"
local device_rules = require "cluster.apiserver.resources.devices.device"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local storage = require "cluster.apiserver.resources.storage.common"

local DEVICES_MAX, ADVANCED_MAX, SETS_MAX = 128, 64, 8
local ONE_OF = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
local ONE_TERM = "must have exactly one node selector term"
local PLACES = { "nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection" }
local NONE = {}

local TOLD = {
  empty = "must be either unset or set to a non-empty string", none = ONE_OF,
  many = ONE_OF .. ", but multiple fields are set",
  selector = function(selector, path, errors)
    local terms, at = check.list(selector.nodeSelectorTerms), path .. ".nodeSelectorTerms"
    if #terms ~= 1 then
      errors[#errors + 1] = #terms == 0 and check.invalid_text(at, "[]", ONE_TERM) or field.invalid(at, terms, ONE_TERM)
    end
  end,
}


local function defaults(object)
  for _, device in ipairs(object.spec.devices or NONE) do
    device_rules.defaults(device)
  end
end


local function prepare(object)
  for _, device in ipairs(object.spec.devices or NONE) do
    device_rules.drop(device)
  end
end


local function check_pool(pool, path, errors)
  common.pool(pool.name, path .. ".name", errors)
  if pool.resourceSliceCount <= 0 then
    errors[#errors + 1] = field.invalid(path .. ".resourceSliceCount", pool.resourceSliceCount,
      "must be greater than zero")
  end
  if pool.generation < 0 then
    errors[#errors + 1] = field.invalid(path .. ".generation", pool.generation,
      "must be greater than or equal to zero")
  end
end


local function check_same(spec, old, errors)
  check.immutable_value(spec.pool.name, old.pool.name, "spec.pool.name", errors)
  check.immutable_value(spec.driver, old.driver, "spec.driver", errors)
  check.immutable_value(spec.nodeName, old.nodeName, "spec.nodeName", errors)
end


local function name_of(item)
  return item.name
end


local function check_devices(spec, old, errors)
  local before, most = {}, DEVICES_MAX
  for _, device in ipairs(old and old.devices or NONE) do
    before[device.name] = before[device.name] or device
  end
  for _, device in ipairs(spec.devices or NONE) do
    if device.taints or device.consumesCounters then
      most = ADVANCED_MAX
    end
  end
  common.each_once(spec.devices, most, "spec.devices", errors, function(device, at)
    device_rules.check(device, before[device.name], spec.perDeviceNodeSelection, at, errors)
  end, name_of)
end


local function check_set(set, path, errors)
  if set.name == "" then
    errors[#errors + 1] = field.required(path .. ".name", "")
  else
    common.name(set.name, names.label, path .. ".name", errors)
  end
  device_rules.check_counters(set.counters, path .. ".counters", errors)
end


local function check_spec(spec, old)
  local errors = {}
  storage.check_driver(spec.driver, "spec.driver", errors)
  check_pool(spec.pool, "spec.pool", errors)
  if old then
    check_same(spec, old, errors)
  end
  device_rules.check_nodes(spec, PLACES, TOLD, "spec", errors)
  if spec.sharedCounters and spec.devices then
    errors[#errors + 1] = field.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
  end
  check_devices(spec, old, errors)
  common.each_once(spec.sharedCounters, SETS_MAX, "spec.sharedCounters", errors, function(set, at)
    check_set(set, at, errors)
  end, name_of)
  return errors
end


local function warnings(object)
  local driver = object.spec.driver
  return driver ~= driver:lower() and {
    ("spec.driver: driver names should be lowercase; %s contains uppercase characters"):format(field.quote(driver)),
  } or NONE
end


return {
  defaults = defaults,
  prepare_create = prepare, prepare_update = prepare,
  validate = function(object)
    return check_spec(object.spec)
  end,
  validate_update = function(new, old)
    return check_spec(new.spec, old.spec)
  end,
  warnings = warnings,
  returns_deleted = true,
  fields_of = "resource.k8s.io/v1, Kind=ResourceSlice",
  field_names = { ["spec.nodeName"] = true, ["spec.driver"] = true },
  fields = function(object)
    return { ["spec.nodeName"] = object.spec.nodeName or "", ["spec.driver"] = object.spec.driver }
  end,
  cells = function(obj, now)
    local spec = obj.spec
    return { obj.metadata.name, spec.nodeName or "", spec.driver, spec.pool.name, age.of(obj, now) }
  end,
}
