--- ReplicaSets.
---
--- Rules: kubernetes/pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go,
--- pkg/registry/apps/replicaset/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local text = require "cluster.apiserver.tables.text"
local warnings = require "cluster.apiserver.resources.pod.warnings"
local workload = require "cluster.apiserver.resources.workload"

local NUMBERS = {
  "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration", "terminatingReplicas",
}
local PARTS = { "fullyLabeledReplicas", "readyReplicas", "availableReplicas" }


local function defaults(object)
  object.spec.replicas = object.spec.replicas or 1
  workload.default_template(object)
end


local function validate(object)
  local errors, spec = {}, object.spec
  workload.not_negative(spec, "spec", { "replicas", "minReadySeconds" }, errors)
  workload.check_pods(spec, errors)
  return errors
end


local function validate_update(new, old)
  local errors = validate(new)
  check.immutable_value(new.spec.selector, old.spec.selector, "spec.selector", errors)
  return errors
end


local function validate_status(new)
  local errors = {}
  workload.not_negative(new.status, "status", NUMBERS, errors)
  workload.check_counts(new.status, PARTS, "readyReplicas", errors)
  return errors
end


local function cells(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local names, images = text.containers(spec.template and spec.template.spec)
  return {
    obj.metadata.name, spec.replicas or 0, status.replicas or 0, status.readyReplicas or 0, age.of(obj, now),
    names, images, text.selector(spec.selector),
  }
end


return {
  defaults = defaults,
  prepare_create = workload.clear_status,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  warnings = warnings.template,
  validate = validate,
  validate_update = validate_update,
  validate_status = validate_status,
  field_names = { ["status.replicas"] = true },
  fields = function(object)
    return { ["status.replicas"] = tostring(object.status.replicas) }
  end,
  cells = cells,
}
