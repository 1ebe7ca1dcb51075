--- DaemonSets.
---
--- Rules: kubernetes/pkg/apis/apps/v1/{defaults,conversion}.go, pkg/apis/apps/validation/validation.go
--- (ValidateDaemonSet), pkg/registry/apps/daemonset/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local int_or_percent = require "cluster.apiserver.resources.int_or_percent"
local selectors = require "cluster.apiserver.resources.selectors"
local template = require "cluster.apiserver.resources.pod.template"
local text = require "cluster.apiserver.tables.text"
local warnings = require "cluster.apiserver.resources.pod.warnings"
local workload = require "cluster.apiserver.resources.workload"

-- The annotation that counts changes of the template; it was a field before v1.
local GENERATION = "deprecated.daemonset.template.generation"
local NUMBERS = {
  "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
  "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
}


local function generation_of(object)
  return math.tointeger(tonumber((object.metadata.annotations or {})[GENERATION])) or 0
end


local function set_generation(object, number)
  object.metadata.annotations = object.metadata.annotations or {}
  object.metadata.annotations[GENERATION] = tostring(number)
end


local function defaults(object)
  local spec = object.spec
  local strategy = spec.updateStrategy
  strategy.type = strategy.type or "RollingUpdate"
  if strategy.type == "RollingUpdate" then
    local rolling = strategy.rollingUpdate or {}
    rolling.maxUnavailable = rolling.maxUnavailable == nil and 1 or rolling.maxUnavailable
    rolling.maxSurge = rolling.maxSurge == nil and 0 or rolling.maxSurge
    strategy.rollingUpdate = rolling
  end
  spec.revisionHistoryLimit = spec.revisionHistoryLimit or 10
  workload.default_template(object)
  set_generation(object, generation_of(object))
end


local function prepare_create(object)
  object.status = {
    currentNumberScheduled = 0, numberMisscheduled = 0, desiredNumberScheduled = 0, numberReady = 0,
  }
  set_generation(object, math.max(generation_of(object), 1))
end


local function prepare_update(new, old)
  new.status = old.status
  local changed = not host.json.equal(new.spec.template, old.spec.template)
  set_generation(new, generation_of(old) + (changed and 1 or 0))
end


local function check_rolling(rolling, path, errors)
  for _, rule in ipairs { int_or_percent.validate, int_or_percent.at_most_all } do
    rule(rolling.maxUnavailable, path .. ".maxUnavailable", errors)
    rule(rolling.maxSurge, path .. ".maxSurge", errors)
  end
  local unavailable, surge = int_or_percent.number(rolling.maxUnavailable), int_or_percent.number(rolling.maxSurge)
  if unavailable ~= 0 and surge ~= 0 then
    errors[#errors + 1] = field.invalid(path .. ".maxSurge", rolling.maxSurge,
      "may not be set when maxUnavailable is non-zero")
  elseif unavailable == 0 and surge == 0 then
    errors[#errors + 1] = field.required(path .. ".maxUnavailable", "cannot be 0 when maxSurge is 0")
  end
end


local function check_strategy(strategy, errors)
  local path = "spec.updateStrategy"
  if strategy.type == "RollingUpdate" then
    check_rolling(strategy.rollingUpdate, path .. ".rollingUpdate", errors)
  elseif strategy.type ~= "OnDelete" then
    local rolling = strategy.rollingUpdate
    local inner = rolling and check.go_struct {
      { "MaxUnavailable", rolling.maxUnavailable or 0 }, { "MaxSurge", rolling.maxSurge or 0 },
    }
    local strategy_text = check.go_struct { { "Type", strategy.type }, { "RollingUpdate", inner, inner ~= nil } }
    errors[#errors + 1] = check.unsupported_text(path, strategy_text, { "RollingUpdate", "OnDelete" })
  end
end


local function validate(object)
  local errors, spec = {}, object.spec
  local labels = spec.template.metadata.labels
  selectors.validate(spec.selector, "spec.selector", errors)
  if #errors == 0 and not (spec.selector and selectors.matches(spec.selector, labels)) then
    errors[#errors + 1] = field.invalid("spec.template.metadata.labels", labels or host.json.null,
      "`selector` does not match template `labels`")
  end
  if spec.selector and selectors.is_empty(spec.selector) then
    errors[#errors + 1] = field.invalid("spec.selector", spec.selector, "empty selector is invalid for daemonset")
  end
  template.validate(spec.template, "spec.template", errors)
  workload.check_endless(spec.template.spec, "DaemonSet", errors)
  check.not_negative(spec.minReadySeconds, "spec.minReadySeconds", errors)
  check_strategy(spec.updateStrategy, errors)
  check.not_negative(spec.revisionHistoryLimit, "spec.revisionHistoryLimit", errors)
  return errors
end


local function validate_update(new, old)
  local errors = {}
  check.immutable_value(new.spec.selector, old.spec.selector, "spec.selector", errors)
  return check.append(errors, validate(new))
end


local function validate_status(new, old)
  local errors = {}
  workload.not_negative(new.status, "status", NUMBERS, errors)
  workload.check_collisions(new, old, errors)
  return errors
end


local function cells(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local names, images = text.containers(spec.template.spec)
  return {
    obj.metadata.name, status.desiredNumberScheduled or 0, status.currentNumberScheduled or 0, status.numberReady or 0,
    status.updatedNumberScheduled or 0, status.numberAvailable or 0, text.labels(spec.template.spec.nodeSelector),
    age.of(obj, now), names, images, text.selector(spec.selector),
  }
end


return {
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = prepare_update,
  prepare_status = workload.keep_spec,
  warnings = warnings.template,
  validate = validate, validate_update = validate_update, validate_status = validate_status,
  cells = cells,
}
