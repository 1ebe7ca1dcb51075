--- Jobs.
---
--- Rules: kubernetes/pkg/apis/batch/v1/defaults.go, pkg/apis/batch/validation/validation.go,
--- pkg/registry/batch/job/strategy.go.
local cells = require "cluster.apiserver.tables.cells.job"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local job_validation = require "cluster.apiserver.resources.job_validation"
local names = require "cluster.names"
local warnings = require "cluster.apiserver.resources.pod.warnings"
local workload = require "cluster.apiserver.resources.workload"

local UID_LABEL, NAME_LABEL = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
-- As they were called before labels had prefixes.
local OLD_UID_LABEL, OLD_NAME_LABEL = "controller-uid", "job-name"

local INT32_MAX = 2147483647
local IMMUTABLE = { "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy" }
local NUMBERS = { "active", "succeeded", "failed", "ready", "terminating" }


-- A Job without labels has those of its pods.
local function borrow_labels(object)
  local labels = object.spec.template.metadata.labels
  if labels and not object.metadata.labels then
    object.metadata.labels = host.json.copy(labels)
  end
end


local function default_policy(policy)
  for _, rule in ipairs(policy and check.list(policy.rules) or {}) do
    for _, pattern in ipairs(rule.onPodConditions or {}) do
      pattern.status = pattern.status ~= "" and pattern.status or "True"
    end
  end
end


local function defaults(object)
  local spec = object.spec
  if not spec.completions and not spec.parallelism then
    spec.completions = 1
  end
  spec.parallelism = spec.parallelism or 1
  spec.backoffLimit = spec.backoffLimit or (spec.backoffLimitPerIndex and INT32_MAX or 6)
  spec.completionMode = spec.completionMode or "NonIndexed"
  spec.suspend = spec.suspend or false
  spec.podReplacementPolicy = spec.podReplacementPolicy or (spec.podFailurePolicy and "Failed" or "TerminatingOrFailed")
  spec.manualSelector = spec.manualSelector or false
  default_policy(spec.podFailurePolicy)
  workload.default_template(object)
  borrow_labels(object)
end


-- Pods of a Job are told from others by the Job's uid.
local function make_selector(object)
  local spec, meta = object.spec, object.metadata
  if spec.manualSelector then
    return
  end
  local labels = spec.template.metadata.labels or {}
  spec.template.metadata.labels = labels
  for _, label in ipairs { UID_LABEL, OLD_UID_LABEL } do
    labels[label] = meta.uid
  end
  for _, label in ipairs { NAME_LABEL, OLD_NAME_LABEL } do
    labels[label] = meta.name or ""
  end
  spec.selector = spec.selector or {}
  spec.selector.matchLabels = spec.selector.matchLabels or {}
  spec.selector.matchLabels[UID_LABEL] = spec.selector.matchLabels[UID_LABEL] or meta.uid
end


local function prepare_create(object)
  make_selector(object)
  -- With a name that is no label the Job is refused, for its template alone.
  if not names.label_value(object.metadata.name or "") then
    borrow_labels(object)
  end
  workload.clear_status(object)
end


-- The index of a pod is part of its hostname.
local function check_hostname(object, errors)
  local spec = object.spec
  if spec.completionMode == "Indexed" and (spec.completions or 0) > 0 then
    local name = object.metadata.name or ""
    local longest = ("%s-%d"):format(name, spec.completions - 1)
    if names.label(longest) then
      errors[#errors + 1] = field.invalid("metadata.name", name,
        "will not able to create pod with invalid DNS label: " .. longest)
    end
  end
end


local function validate(object)
  local errors = {}
  if not object.spec.manualSelector then
    job_validation.check_generated(object, { UID_LABEL, OLD_UID_LABEL }, { NAME_LABEL, OLD_NAME_LABEL }, errors)
  end
  job_validation.check_spec(object.spec, errors)
  check_hostname(object, errors)
  return errors
end


-- How many completions are wanted may change together with the parallelism of an indexed Job.
local function check_completions(new, old, errors)
  if new.completionMode == "Indexed" and new.completions ~= old.completions
    and new.completions == new.parallelism then
    return
  end
  check.immutable_value(new.completions, old.completions, "spec.completions", errors)
end


-- Fields that may still change before a Job has started: they decide where its pods go.
local SCHEDULING = { "nodeSelector", "tolerations", "schedulingGates" }


local function with_scheduling_of(old, new)
  local template = host.json.copy(old)
  template.metadata.annotations, template.metadata.labels = new.metadata.annotations, new.metadata.labels
  for _, name in ipairs(SCHEDULING) do
    template.spec[name] = new.spec[name]
  end
  local affinity = template.spec.affinity or {}
  affinity.nodeAffinity = new.spec.affinity and new.spec.affinity.nodeAffinity
  template.spec.affinity = (next(affinity) or new.spec.affinity) and affinity or nil
  return template
end


local function check_template(new, old, errors)
  local before = old.spec.template
  if old.spec.suspend and (old.status.startTime == nil or not old.status.active) then
    before = with_scheduling_of(before, new.spec.template)
    local others = new.spec.template.spec.containers or {}
    for i, container in ipairs(before.spec.containers) do
      local other = others[i]
      container.resources = other and other.name == container.name and other.resources or container.resources
    end
  end
  check.immutable_value(new.spec.template, before, "spec.template", errors)
end


local function validate_update(new, old)
  local errors = {}
  job_validation.check_spec(new.spec, errors)
  check_completions(new.spec, old.spec, errors)
  check.immutable_value(new.spec.selector, old.spec.selector, "spec.selector", errors)
  check_template(new, old, errors)
  for _, name in ipairs(IMMUTABLE) do
    check.immutable_value(new.spec[name], old.spec[name], "spec." .. name, errors)
  end
  return errors
end


local function is_true(status, kind)
  for _, condition in ipairs(status.conditions or {}) do
    if condition.type == kind then
      return condition.status == "True"
    end
  end
  return false
end


-- A Job that has ended stays so, and its counters never decrease.
local function validate_status(new, old)
  local errors, status, before = {}, new.status, old.status
  workload.not_negative(status, "status", NUMBERS, errors)
  for _, kind in ipairs { "Failed", "Complete", "FailureTarget" } do
    if is_true(before, kind) and not is_true(status, kind) then
      errors[#errors + 1] = field.invalid("status.conditions", nil,
        ("cannot disable the terminal %s=True condition"):format(kind))
    end
  end
  for _, name in ipairs { "failed", "succeeded" } do
    if (status[name] or 0) < (before[name] or 0) then
      errors[#errors + 1] = field.invalid("status." .. name, status[name] or 0,
        ("cannot decrease the %s counter"):format(name))
    end
  end
  return errors
end


return {
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  warnings = warnings.template,
  validate = validate,
  validate_update = validate_update,
  validate_status = validate_status,
  field_names = { ["status.successful"] = true },
  fields = function(object)
    return { ["status.successful"] = tostring(object.status.succeeded or 0) }
  end,
  cells = cells,
}
