--- HorizontalPodAutoscalers of autoscaling/v2, as which they are stored.
---
--- Rules: kubernetes/pkg/apis/autoscaling/v2/defaults.go, pkg/apis/autoscaling/validation/validation.go,
--- pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local lists = require "cluster.apiserver.resources.resource_lists"
local metrics = require "cluster.apiserver.resources.autoscaling.metrics"
local workload = require "cluster.apiserver.resources.workload"

local WINDOW_MAX, PERIOD_MAX = 3600, 1800
local SELECT = { "Disabled", "Max", "Min" }
local POLICIES = { "Percent", "Pods" }
local CPU_SHARE = 80


local function default_up()
  return {
    stabilizationWindowSeconds = 0, selectPolicy = "Max",
    policies = host.json.array {
      { type = "Pods", value = 4, periodSeconds = 15 }, { type = "Percent", value = 100, periodSeconds = 15 },
    },
  }
end


local function default_down()
  return { selectPolicy = "Max", policies = host.json.array { { type = "Percent", value = 100, periodSeconds = 15 } } }
end


-- The rules given, completed with those of `all`.
local function complete(rules, all)
  for name, value in pairs(rules or {}) do
    all[name] = value
  end
  return all
end


local function defaults(object)
  local spec = object.spec
  spec.minReplicas = spec.minReplicas or 1
  spec.metrics = spec.metrics or host.json.array { {
    type = "Resource",
    resource = { name = "cpu", target = { type = "Utilization", averageUtilization = CPU_SHARE } },
  } }
  if spec.behavior then
    spec.behavior.scaleUp = complete(spec.behavior.scaleUp, default_up())
    spec.behavior.scaleDown = complete(spec.behavior.scaleDown, default_down())
  end
end


local function prepare_create(object)
  object.status = { currentMetrics = host.json.null, desiredReplicas = 0 }
end


local function check_policy(policy, path, errors)
  if policy.type ~= "Pods" and policy.type ~= "Percent" then
    errors[#errors + 1] = field.not_supported(path .. ".type", policy.type, POLICIES)
  end
  for _, name in ipairs { "value", "periodSeconds" } do
    if policy[name] <= 0 then
      errors[#errors + 1] = field.invalid(path .. "." .. name, policy[name], "must be greater than zero")
    end
  end
  if policy.periodSeconds > PERIOD_MAX then
    errors[#errors + 1] = field.invalid(path .. ".periodSeconds", policy.periodSeconds,
      ("must be less than or equal to %d"):format(PERIOD_MAX))
  end
end


local function check_rules(rules, path, errors)
  local window = rules.stabilizationWindowSeconds
  if window and window < 0 then
    errors[#errors + 1] = field.invalid(path .. ".stabilizationWindowSeconds", window,
      "must be greater than or equal to zero")
  elseif window and window > WINDOW_MAX then
    errors[#errors + 1] = field.invalid(path .. ".stabilizationWindowSeconds", window,
      ("must be less than or equal to %d"):format(WINDOW_MAX))
  end
  check.choice(rules.selectPolicy, SELECT, path .. ".selectPolicy", errors)
  if #check.list(rules.policies) == 0 then
    errors[#errors + 1] = field.required(path .. ".policies", "must specify at least one Policy")
  end
  for i, policy in ipairs(check.list(rules.policies)) do
    check_policy(policy, ("%s.policies[%d]"):format(path, i - 1), errors)
  end
  if rules.tolerance and lists.compare(rules.tolerance, "0") < 0 then
    errors[#errors + 1] = field.invalid(path .. ".tolerance", rules.tolerance, "must be greater than or equal to 0")
  end
end


local function check_bounds(spec, lowest, errors)
  local least, most = spec.minReplicas, spec.maxReplicas
  if least < lowest then
    errors[#errors + 1] = field.invalid("spec.minReplicas", least,
      ("must be greater than or equal to %d"):format(lowest))
  end
  if most == 0 then
    errors[#errors + 1] = field.required("spec.maxReplicas", "must be set and greater than 0")
  elseif most < 0 then
    errors[#errors + 1] = field.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
  end
  if most < least then
    errors[#errors + 1] = field.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
  end
end


local function same_target(spec, old)
  local target, before = spec.scaleTargetRef, old.scaleTargetRef
  return target.kind == before.kind and target.apiVersion == before.apiVersion
end


local function validate_update(new, old)
  local errors, spec = {}, new.spec
  check_bounds(spec, old and old.spec.minReplicas == 0 and 0 or 1, errors)
  metrics.check_reference(spec.scaleTargetRef, "spec.scaleTargetRef", {
    any_version = old and same_target(spec, old.spec),
    empty_group = spec.scaleTargetRef.kind == "ReplicationController",
  }, errors)
  metrics.validate(spec, { empty_group = true }, errors)
  if spec.behavior then
    check_rules(spec.behavior.scaleUp, "spec.behavior.scaleUp", errors)
    check_rules(spec.behavior.scaleDown, "spec.behavior.scaleDown", errors)
  end
  return errors
end


local function validate(object)
  return validate_update(object, nil)
end


local function validate_status(new)
  local errors = {}
  workload.not_negative(new.status, "status", { "currentReplicas", "desiredReplicas" }, errors)
  return errors
end


local function cells(obj, now)
  local spec, status = obj.spec, obj.status or {}
  return {
    obj.metadata.name, spec.scaleTargetRef.kind .. "/" .. spec.scaleTargetRef.name,
    metrics.cell(spec.metrics, status.currentMetrics), spec.minReplicas and tostring(spec.minReplicas) or "<unset>",
    spec.maxReplicas, status.currentReplicas or 0, age.of(obj, now),
  }
end


return {
  spec_changed = false,
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  validate = validate, validate_update = validate_update, validate_status = validate_status,
  cells = cells,
}
