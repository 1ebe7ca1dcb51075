--- ReplicationControllers: ReplicaSets of old, whose selector is a plain map of labels.
---
--- Rules: kubernetes/pkg/apis/core/v1/defaults.go, pkg/apis/core/validation/validation.go
--- (ValidateReplicationController), pkg/registry/core/replicationcontroller/strategy.go.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local replicas = require "cluster.apiserver.resources.replicas"
local selectors = require "cluster.apiserver.resources.selectors"
local template = require "cluster.apiserver.resources.pod.template"
local text = require "cluster.apiserver.tables.text"
local warnings = require "cluster.apiserver.resources.pod.warnings"
local workload = require "cluster.apiserver.resources.workload"


-- Without a selector, or labels, it has those of its pods.
local function defaults(object)
  local spec = object.spec
  if not spec.template then
    return
  end
  workload.default_template(object)
  local labels = spec.template.metadata.labels
  if labels then
    spec.selector = spec.selector or host.json.copy(labels)
    object.metadata.labels = object.metadata.labels or host.json.copy(labels)
  end
end


local function check_template(spec, errors)
  local pods = spec.template
  if not pods then
    errors[#errors + 1] = field.required("spec.template", "")
    return
  end
  if spec.selector and not selectors.matches({ matchLabels = spec.selector }, pods.metadata.labels) then
    errors[#errors + 1] = field.invalid("spec.template.metadata.labels", pods.metadata.labels or host.json.null,
      "`selector` does not match template `labels`")
  end
  template.validate(pods, "spec.template", errors)
  workload.check_endless(pods.spec, "ReplicationController", errors)
end


local function validate(object)
  local errors, spec = {}, object.spec
  workload.not_negative(spec, "spec", { "minReadySeconds" }, errors)
  if not spec.selector then
    errors[#errors + 1] = field.required("spec.selector", "")
  end
  workload.not_negative(spec, "spec", { "replicas" }, errors)
  check_template(spec, errors)
  return errors
end


return {
  defaults = defaults,
  prepare_create = workload.clear_status,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  warnings = function(object, old)
    return object.spec.template and warnings.template(object, old) or {}
  end,
  validate = validate,
  validate_update = validate,
  validate_status = replicas.validate_status,
  field_names = replicas.field_names,
  fields = replicas.fields,
  cells = replicas.cells(text.labels),
}
