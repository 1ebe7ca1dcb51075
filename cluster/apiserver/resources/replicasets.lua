--- ReplicaSets.
---
--- Rules: kubernetes/pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go,
--- pkg/registry/apps/replicaset/strategy.go.
local check = require "cluster.apiserver.resources.check"
local replicas = require "cluster.apiserver.resources.replicas"
local text = require "cluster.apiserver.tables.text"
local warnings = require "cluster.apiserver.resources.pod.warnings"
local workload = require "cluster.apiserver.resources.workload"


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


return {
  defaults = defaults,
  prepare_create = workload.clear_status,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  warnings = warnings.template,
  validate = validate,
  validate_update = validate_update,
  validate_status = replicas.validate_status,
  field_names = replicas.field_names,
  fields = replicas.fields,
  cells = replicas.cells(text.selector),
}
