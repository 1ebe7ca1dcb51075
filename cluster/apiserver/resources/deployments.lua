--- Deployments.
---
--- Rules: kubernetes/pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go,
--- pkg/registry/apps/deployment/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local int_or_percent = require "cluster.apiserver.resources.int_or_percent"
local text = require "cluster.apiserver.tables.text"
local warnings = require "cluster.apiserver.resources.pod.warnings"
local workload = require "cluster.apiserver.resources.workload"

local NUMBERS = {
  "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
  "terminatingReplicas", "collisionCount",
}
local PARTS = { "updatedReplicas", "readyReplicas", "availableReplicas" }


local function defaults(object)
  local spec = object.spec
  local strategy = spec.strategy
  spec.replicas = spec.replicas or 1
  strategy.type = strategy.type or "RollingUpdate"
  if strategy.type == "RollingUpdate" then
    local rolling = strategy.rollingUpdate or {}
    rolling.maxUnavailable = rolling.maxUnavailable or "25%"
    rolling.maxSurge = rolling.maxSurge or "25%"
    strategy.rollingUpdate = rolling
  end
  spec.revisionHistoryLimit = spec.revisionHistoryLimit or 10
  spec.progressDeadlineSeconds = spec.progressDeadlineSeconds or 600
  workload.default_template(object)
end


local function check_rolling(rolling, path, errors)
  local unavailable, surge = rolling.maxUnavailable, rolling.maxSurge
  int_or_percent.validate(unavailable, path .. ".maxUnavailable", errors)
  int_or_percent.validate(surge, path .. ".maxSurge", errors)
  if int_or_percent.number(unavailable) == 0 and int_or_percent.number(surge) == 0 then
    errors[#errors + 1] = field.invalid(path .. ".maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
  end
  int_or_percent.at_most_all(unavailable, path .. ".maxUnavailable", errors)
end


local function check_strategy(strategy, errors)
  local path = "spec.strategy"
  if strategy.type == "RollingUpdate" then
    check_rolling(strategy.rollingUpdate, path .. ".rollingUpdate", errors)
  elseif strategy.type ~= "Recreate" then
    local rolling = strategy.rollingUpdate
    local inner = rolling and check.go_struct {
      { "MaxUnavailable", rolling.maxUnavailable or 0 }, { "MaxSurge", rolling.maxSurge or 0 },
    }
    local strategy_text = check.go_struct { { "Type", strategy.type }, { "RollingUpdate", inner, inner ~= nil } }
    errors[#errors + 1] = check.unsupported_text(path, strategy_text, { "Recreate", "RollingUpdate" })
  elseif strategy.rollingUpdate then
    errors[#errors + 1] = field.forbidden(path .. ".rollingUpdate",
      "may not be specified when strategy `type` is 'Recreate'")
  end
end


local function validate(object)
  local errors, spec = {}, object.spec
  check.not_negative(spec.replicas, "spec.replicas", errors)
  workload.check_pods(spec, errors)
  check_strategy(spec.strategy, errors)
  workload.not_negative(spec, "spec", { "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds" }, errors)
  if spec.progressDeadlineSeconds <= (spec.minReadySeconds or 0) then
    errors[#errors + 1] = field.invalid("spec.progressDeadlineSeconds", spec.progressDeadlineSeconds,
      "must be greater than minReadySeconds")
  end
  return errors
end


local function validate_update(new, old)
  local errors = validate(new)
  check.immutable_value(new.spec.selector, old.spec.selector, "spec.selector", errors)
  return errors
end


local function validate_status(new, old)
  local errors = {}
  workload.not_negative(new.status, "status", NUMBERS, errors)
  workload.check_counts(new.status, PARTS, "readyReplicas", errors)
  workload.check_collisions(new, old, errors)
  return errors
end


local function prepare_status(new, old)
  new.spec = old.spec
  new.metadata.labels = old.metadata.labels
end


-- The annotations count too: a roll-out copies them to its ReplicaSet.
local function spec_changed(new, old)
  return not (host.json.equal(new.spec, old.spec)
    and host.json.equal(new.metadata.annotations or {}, old.metadata.annotations or {}))
end


local function cells(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local names, images = text.containers(spec.template.spec)
  return {
    obj.metadata.name, ("%d/%d"):format(status.readyReplicas or 0, spec.replicas or 0), status.updatedReplicas or 0,
    status.availableReplicas or 0, age.of(obj, now), names, images, text.selector(spec.selector, ""),
  }
end


return {
  defaults = defaults,
  prepare_create = workload.clear_status,
  prepare_update = workload.keep_status,
  prepare_status = prepare_status,
  warnings = warnings.template,
  validate = validate,
  validate_update = validate_update,
  validate_status = validate_status,
  spec_changed = spec_changed,
  cells = cells,
}
