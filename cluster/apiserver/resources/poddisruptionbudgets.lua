--- Pod disruption budgets. controllers/disruption.lua writes their status, which evictions obey and charge.
---
--- Rules: kubernetes/pkg/apis/policy/validation/validation.go, pkg/registry/policy/poddisruptionbudget/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local int_or_percent = require "cluster.apiserver.resources.int_or_percent"
local names = require "cluster.names"
local selectors = require "cluster.apiserver.resources.selectors"
local workload = require "cluster.apiserver.resources.workload"

local NUMBERS = { "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods" }
local POLICIES = { "AlwaysAllow", "IfHealthyBudget" }


local function validate(object)
  local errors, spec = {}, object.spec
  if spec.minAvailable ~= nil and spec.maxUnavailable ~= nil then
    local spec_text = check.go_struct {
      { "MinAvailable", spec.minAvailable }, { "Selector", spec.selector }, { "MaxUnavailable", spec.maxUnavailable },
      { "UnhealthyPodEvictionPolicy", spec.unhealthyPodEvictionPolicy },
    }
    errors[#errors + 1] = check.invalid_text("spec", spec_text, "minAvailable and maxUnavailable cannot be both set")
  end
  for _, name in ipairs { "minAvailable", "maxUnavailable" } do
    if spec[name] ~= nil then
      int_or_percent.validate(spec[name], "spec." .. name, errors)
      int_or_percent.at_most_all(spec[name], "spec." .. name, errors)
    end
  end
  selectors.validate(spec.selector, "spec.selector", errors)
  check.one_of(spec.unhealthyPodEvictionPolicy, POLICIES, "spec.unhealthyPodEvictionPolicy", errors)
  return errors
end


local function validate_status(new)
  local errors = {}
  workload.not_negative(new.status, "status", NUMBERS, errors)
  return errors
end


local function prepare_create(object)
  object.status = { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0, expectedPods = 0 }
end


local function number_text(number_or_percent)
  return number_or_percent and tostring(number_or_percent) or "N/A"
end


local function cells(obj, now)
  local spec, status = obj.spec or {}, obj.status or {}
  return {
    obj.metadata.name, number_text(spec.minAvailable), number_text(spec.maxUnavailable), status.disruptionsAllowed or 0,
    age.of(obj, now),
  }
end


return {
  -- Names are not looked at any closer.
  name = names.path_segment,
  unconditional_update = false,
  prepare_create = prepare_create,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  validate = validate, validate_update = validate, validate_status = validate_status,
  cells = cells,
}
