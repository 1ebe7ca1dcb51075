--- The rules for the spec of a Job.
---
--- Rules: kubernetes/pkg/apis/batch/validation/validation.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local selectors = require "cluster.apiserver.resources.selectors"
local template = require "cluster.apiserver.resources.pod.template"
local workload = require "cluster.apiserver.resources.workload"

local M = {}

local INDEXED_PARALLELISM_MAX = 100000
local NUMBERS = {
  "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
  "backoffLimitPerIndex", "maxFailedIndexes",
}
local RULES_MAX = 20


local function must_have(labels, label, value, errors)
  local path = "spec.template.metadata"
  local actual = labels[label]
  if not actual then
    errors[#errors + 1] = field.required(path .. ".labels[" .. label .. "]", ("must be '%s'"):format(value))
  elseif actual ~= value then
    errors[#errors + 1] = field.invalid(path .. ".labels[" .. label .. "]", labels, ("must be '%s'"):format(value))
  end
end


--- The labels and the selector that the server made have to be the Job's own.
--- @param uid_labels table those with the uid, the newest name first  @param name_labels table those with the name
function M.check_generated(object, uid_labels, name_labels, errors)
  local meta, labels, selector = object.metadata, object.spec.template.metadata.labels or {}, object.spec.selector
  local expected = {}
  for i = #uid_labels, 1, -1 do
    must_have(labels, uid_labels[i], meta.uid, errors)
    must_have(labels, name_labels[i], meta.name or "", errors)
    expected[uid_labels[i]], expected[name_labels[i]] = meta.uid, meta.name or ""
  end
  if selectors.is_valid(selector) and not selectors.matches(selector, expected) then
    errors[#errors + 1] = field.invalid("spec.selector", selector, "`selector` not auto-generated")
  end
end


local function check_indexed(spec, errors)
  if not spec.completions then
    errors[#errors + 1] = field.required("spec.completions", "when completion mode is Indexed")
  end
  if (spec.parallelism or 0) > INDEXED_PARALLELISM_MAX then
    errors[#errors + 1] = field.invalid("spec.parallelism", spec.parallelism,
      ("must be less than or equal to %d when completion mode is Indexed"):format(INDEXED_PARALLELISM_MAX))
  end
  if spec.completions and spec.maxFailedIndexes and spec.maxFailedIndexes > spec.completions then
    errors[#errors + 1] = field.invalid("spec.maxFailedIndexes", spec.maxFailedIndexes,
      "must be less than or equal to completions")
  end
end


local function check_mode(spec, errors)
  local mode = spec.completionMode
  if mode == "Indexed" then
    return check_indexed(spec, errors)
  elseif mode and mode ~= "NonIndexed" then
    errors[#errors + 1] = field.not_supported("spec.completionMode", mode, { "NonIndexed", "Indexed" })
    return
  end
  for _, name in ipairs { "backoffLimitPerIndex", "maxFailedIndexes" } do
    if spec[name] then
      errors[#errors + 1] = field.invalid("spec." .. name, spec[name], "requires indexed completion mode")
    end
  end
end


local function check_failure_rule(rule, spec, path, errors)
  local choices = { "Count", "FailIndex", "FailJob", "Ignore" }
  if rule.action == "" then
    errors[#errors + 1] = field.required(path .. ".action", 'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]')
  elseif rule.action == "FailIndex" and not spec.backoffLimitPerIndex then
    errors[#errors + 1] = field.invalid(path .. ".action", rule.action, "requires the backoffLimitPerIndex to be set")
  else
    check.one_of(rule.action, choices, path .. ".action", errors)
  end
  local conditions = rule.onPodConditions
  if rule.onExitCodes and conditions then
    errors[#errors + 1] = field.invalid(path, nil,
      "specifying both OnExitCodes and OnPodConditions is not supported")
  elseif not rule.onExitCodes and not conditions then
    errors[#errors + 1] = field.invalid(path, nil, "specifying one of OnExitCodes and OnPodConditions is required")
  end
end


local function check_policies(spec, errors)
  local policy, replacement = spec.podFailurePolicy, spec.podReplacementPolicy
  if policy then
    local list = check.list(policy.rules)
    if #list > RULES_MAX then
      errors[#errors + 1] = field.too_many("spec.podFailurePolicy.rules", #list, RULES_MAX)
    end
    for i, rule in ipairs(list) do
      check_failure_rule(rule, spec, ("spec.podFailurePolicy.rules[%d]"):format(i - 1), errors)
    end
  end
  if spec.successPolicy and spec.completionMode ~= "Indexed" then
    errors[#errors + 1] = field.invalid("spec.successPolicy", spec.successPolicy, "requires indexed completion mode")
  end
  check.one_of(replacement, policy and { "Failed" } or { "Failed", "TerminatingOrFailed" },
    "spec.podReplacementPolicy", errors)
end


-- A Job ends, so its pods must.
local function check_restart(spec, errors)
  local path, policy = "spec.template.spec.restartPolicy", spec.template.spec.restartPolicy
  if policy == "Always" then
    errors[#errors + 1] = field.required(path, 'valid values: "OnFailure", "Never"')
  elseif policy ~= "OnFailure" and policy ~= "Never" then
    errors[#errors + 1] = field.not_supported(path, policy, { "OnFailure", "Never" })
  elseif spec.podFailurePolicy and policy ~= "Never" then
    errors[#errors + 1] = field.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')
  end
end


local function check_selector(spec, errors)
  if not spec.selector then
    errors[#errors + 1] = field.required("spec.selector", "")
  end
  local before = #errors
  selectors.validate(spec.selector, "spec.selector", errors)
  local labels = spec.template.metadata.labels
  if not spec.selector or #errors == before and not selectors.matches(spec.selector, labels) then
    errors[#errors + 1] = field.invalid("spec.template.metadata.labels", labels or host.json.null,
      "`selector` does not match template `labels`")
  end
end


local function check_manager(manager, errors)
  check.domain_prefixed_path(manager, "spec.managedBy", errors)
  if #manager > 63 then
    errors[#errors + 1] = field.too_long("spec.managedBy", "", 63)
  end
end


-- Checks a spec, except for its selector.
local function check_body(spec, errors)
  workload.not_negative(spec, "spec", NUMBERS, errors)
  if spec.maxFailedIndexes and not spec.backoffLimitPerIndex then
    errors[#errors + 1] = field.required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
  end
  if spec.managedBy then
    check_manager(spec.managedBy, errors)
  end
  check_mode(spec, errors)
  check_policies(spec, errors)
  template.validate(spec.template, "spec.template", errors)
  check_restart(spec, errors)
end


--- Checks the spec and adds what is wrong with it to `errors`.
function M.check_spec(spec, errors)
  check_body(spec, errors)
  check_selector(spec, errors)
end


--- The same for the spec of Jobs that are to be made, which have no selector yet and no defaults.
--- @param path string where it stands: "spec.jobTemplate.spec"
function M.check_template(spec, path, errors)
  local list = {}
  check_body(spec, list)
  if spec.selector then
    list[#list + 1] = field.invalid("spec.selector", spec.selector, "`selector` will be auto-generated")
  end
  if spec.manualSelector then
    list[#list + 1] = field.not_supported("spec.manualSelector", spec.manualSelector, { "nil", "false" })
  end
  for _, err in ipairs(list) do
    err.path = path .. err.path:sub(#"spec" + 1)
    errors[#errors + 1] = err
  end
end


return M
