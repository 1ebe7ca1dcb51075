--- ValidatingAdmissionPolicies; admission/policies enforces them.
---
--- Rules and wordings: kubernetes/pkg/apis/admissionregistration/validation/validation.go,
--- pkg/registry/admissionregistration/validatingadmissionpolicy/{strategy,authz}.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local expressions = require "cluster.apiserver.admission.expressions"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local rules = require "cluster.apiserver.resources.admission.rules"
local status_rules = require "cluster.apiserver.resources.flowcontrol.status"

local NONE = {}
local FAILURES = { "Fail", "Ignore" }
local REASONS = { "Forbidden", "Invalid", "RequestEntityTooLarge" }
local ANNOTATIONS_MAX, VALUE_MAX = 20, 5 * 1024
local NO_RULE = "validations or auditAnnotations must contain at least one item"
local RESERVED = check.set { "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
  "function", "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while" }


local function trim(text)
  return (text or ""):match "^%s*(.-)%s*$"
end


local function defaults(object)
  local spec = object.spec
  spec.failurePolicy = spec.failurePolicy or "Fail"
  rules.default_resources(spec.matchConstraints)
end


local function check_api_version(text, path, errors)
  local _, slashes = text:gsub("/", "")
  local group, version = text:match "^(.-)/?([^/]*)$"
  if slashes > 1 then
    errors[#errors + 1] = field.invalid(path, text, "unexpected GroupVersion string: " .. text)
    return
  end
  local messages = group ~= "" and names.subdomain(group)
  if messages then
    errors[#errors + 1] = field.invalid(path, group, table.concat(messages, ","))
  end
  if version == "" then
    errors[#errors + 1] = field.invalid(path, text, "version must be specified")
  else
    messages = names.label_1035(version)
    if messages then
      errors[#errors + 1] = field.invalid(path, version, table.concat(messages, ","))
    end
  end
end


local function check_param_kind(kind, path, errors)
  if (kind.apiVersion or "") == "" then
    errors[#errors + 1] = field.required(path .. ".apiVersion", "")
  else
    check_api_version(kind.apiVersion, path .. ".apiVersion", errors)
  end
  if (kind.kind or "") == "" then
    errors[#errors + 1] = field.required(path .. ".kind", "")
    return
  end
  local messages = names.label_1035(kind.kind:lower())
  if messages then
    errors[#errors + 1] = field.invalid(path .. ".kind", kind.kind,
      "may have mixed case, but should otherwise match: " .. table.concat(messages, ","))
  end
end


local function check_variable(variable, compiled, path, errors)
  local name, text = variable.name or "", variable.expression or ""
  if trim(name) == "" then
    errors[#errors + 1] = field.required(path .. ".name", "name is not specified")
  elseif not name:find "^[%a_][%w_]*$" or RESERVED[name] then
    errors[#errors + 1] = field.invalid(path .. ".name", name, "must be a valid CEL identifier")
  end
  if trim(text) == "" then
    errors[#errors + 1] = field.required(path .. ".expression", "expression is not specified")
  elseif compiled.error then
    errors[#errors + 1] = field.invalid(path .. ".expression", text, compiled.error)
  end
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


local function check_constraints(constraints, path, errors)
  if not constraints then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  rules.validate_resources(constraints, path, errors)
  if #(constraints.resourceRules or NONE) == 0 then
    errors[#errors + 1] = field.required(path .. ".resourceRules", "")
  end
end


-- @param same_conditions boolean whether the conditions are those that are stored already
local function check_spec(object, same_conditions)
  local errors, spec = {}, object.spec
  local envs = expressions.of_policy(spec, true)
  rules.choice(spec.failurePolicy, FAILURES, "spec.failurePolicy", errors)
  if spec.paramKind then
    check_param_kind(spec.paramKind, "spec.paramKind", errors)
  end
  check_constraints(spec.matchConstraints, "spec.matchConstraints", errors)
  if not same_conditions then
    rules.validate_conditions(spec.matchConditions, envs.conditions, "spec.matchConditions", errors)
  end
  for i, variable in ipairs(spec.variables or NONE) do
    check_variable(variable, envs.variables[i], ("spec.variables[%d]"):format(i - 1), errors)
  end
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


-- Who makes a policy must be able to read its parameters. @return table|nil a field error
local function unreadable(spec, request)
  local kind, user = spec.paramKind, request.user
  local auth = request.server.auth
  local res = request.server.registry:of(kind.apiVersion, kind.kind)
  local allowed = auth:authorize(user, {
    is_resource = true, verb = "get", group = kind.apiVersion:match "^(.*)/" or "",
    version = kind.apiVersion:match "[^/]*$", resource = res and res.plural or "*", namespace = "*", name = "*",
  })
  return not allowed and field.forbidden("spec.paramKind", ("user %s must have \"get\" permission on all objects of "
    .. "the referenced paramKind (kind=%s, apiVersion=%s)"):format(user.name, kind.kind, kind.apiVersion)) or nil
end


local function validate(object, old, request, earlier)
  local before = old and old.spec
  local same_kind = before and host.json.equal(object.spec.paramKind, before.paramKind)
  local errors = check_spec(object, same_kind and host.json.equal(object.spec.matchConditions, before.matchConditions))
  if #errors == 0 and #(earlier or NONE) == 0 and object.spec.paramKind and not same_kind then
    errors[1] = unreadable(object.spec, request)
  end
  return errors
end


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
  local kind = object.spec.paramKind
  return {
    object.metadata.name, #(object.spec.validations or NONE),
    kind and (kind.apiVersion or "") .. "/" .. (kind.kind or "") or "<unset>", age.of(object, now),
  }
end


return {
  defaults = defaults, unconditional_update = false,
  prepare_create = status_rules.clear, prepare_update = status_rules.keep, prepare_status = status_rules.prepare,
  validate = validate, validate_update = validate, validate_status = validate_status, cells = cells,
}
