--- ValidatingAdmissionPolicies; admission/policies enforces them.
---
--- Rules and wordings: kubernetes/pkg/apis/admissionregistration/validation/validation.go,
--- pkg/registry/admissionregistration/validatingadmissionpolicy/{strategy,authz}.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local expressions = require "cluster.apiserver.admission.expressions"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local parts = require "cluster.apiserver.resources.admission.policy_parts"
local rules = require "cluster.apiserver.resources.admission.rules"
local status_rules = require "cluster.apiserver.resources.flowcontrol.status"

local NONE = {}
local REASONS = { "Forbidden", "Invalid", "RequestEntityTooLarge" }
local ANNOTATIONS_MAX, VALUE_MAX = 20, 5 * 1024
local NO_RULE = "validations or auditAnnotations must contain at least one item"


local function trim(text)
  return (text or ""):match "^%s*(.-)%s*$"
end


local function check_message(validation, env, path, errors)
  local expression, message = validation.messageExpression or "", validation.message or ""
  if expression ~= "" and trim(expression) == "" then
    errors[#errors + 1] = field.invalid(path .. ".messageExpression", expression, "must be non-empty if specified")
  elseif expression ~= "" then
    rules.validate_expression(expression, env, expressions.STRING, path .. ".messageExpression", "", errors)
  end
  if message ~= "" and trim(message) == "" then
    errors[#errors + 1] = field.invalid(path .. ".message", message, "must be non-empty if specified")
  elseif trim(message):find "[\r\n]" then
    errors[#errors + 1] = field.invalid(path .. ".message", message, "must not contain line breaks")
  end
end


local function check_validation(validation, envs, path, errors)
  rules.validate_expression(validation.expression, envs.full, expressions.BOOL, path .. ".expression",
    "expression is not specified", errors)
  check_message(validation, envs.plain, path, errors)
  local reason = validation.reason
  if reason and not check.set(REASONS)[reason] then
    errors[#errors + 1] = field.not_supported(path .. ".reason", reason, REASONS)
  end
end


local function check_annotation(annotation, object_name, env, path, errors)
  local key, value = annotation.key or "", trim(annotation.valueExpression)
  if (object_name or "") == "" then
    errors[#errors + 1] = field.invalid(path .. ".key", key, "requires metadata.name be non-empty")
  else
    local full = object_name .. "/" .. key
    check.each(errors, path .. ".key", full, names.qualified(full))
  end
  if #value > VALUE_MAX then
    errors[#errors + 1] = field.required(path .. ".valueExpression",
      ("must not exceed %d bytes in length"):format(VALUE_MAX))
    return
  end
  rules.validate_expression(value, env, expressions.STRING_OR_NULL, path .. ".valueExpression",
    "valueExpression is not specified", errors)
end


local function check_annotations(annotations, object_name, env, path, errors)
  if #annotations > ANNOTATIONS_MAX then
    errors[#errors + 1] = field.invalid(path, annotations,
      ("must not have more than %d auditAnnotations"):format(ANNOTATIONS_MAX))
  end
  local seen = {}
  for i, annotation in ipairs(annotations) do
    local at = ("%s[%d]"):format(path, i - 1)
    check_annotation(annotation, object_name, env, at, errors)
    if seen[annotation.key or ""] then
      errors[#errors + 1] = field.duplicate(at .. ".key", annotation.key)
    end
    seen[annotation.key or ""] = true
  end
end


-- @param same_conditions boolean whether the conditions are those that are stored already
local function check_spec(object, same_conditions)
  local errors, spec = {}, object.spec
  local envs = expressions.of_policy(spec, true)
  parts.check_spec(spec, envs, same_conditions, false, errors)
  local validations, annotations = spec.validations or NONE, spec.auditAnnotations or NONE
  if #validations == 0 and #annotations == 0 then
    errors[#errors + 1] = field.required("spec.validations", NO_RULE)
    errors[#errors + 1] = field.required("spec.auditAnnotations", NO_RULE)
  end
  for i, validation in ipairs(validations) do
    check_validation(validation, envs, ("spec.validations[%d]"):format(i - 1), errors)
  end
  check_annotations(annotations, object.metadata.name, envs.full, "spec.auditAnnotations", errors)
  return errors
end


local validate = parts.validator(check_spec)


local function validate_status(new)
  local errors, warnings = {}, new.status.typeChecking and new.status.typeChecking.expressionWarnings
  for i, warning in ipairs(warnings or NONE) do
    local path = ("status.typeChecking.expressionWarnings[%d]"):format(i - 1)
    if warning.warning == "" then
      errors[#errors + 1] = field.required(path .. ".warning", "")
    end
    if trim(warning.fieldRef) == "" then
      errors[#errors + 1] = field.required(path .. ".fieldRef", "")
    end
  end
  return errors
end


local function cells(object, now)
  return {
    object.metadata.name, #(object.spec.validations or NONE), parts.shown_kind(object.spec.paramKind),
    age.of(object, now),
  }
end


return {
  defaults = parts.defaults, unconditional_update = false,
  prepare_create = status_rules.clear, prepare_update = status_rules.keep, prepare_status = status_rules.prepare,
  validate = validate, validate_update = validate, validate_status = validate_status, cells = cells,
}
