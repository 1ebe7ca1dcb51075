--- Bindings of ValidatingAdmissionPolicies and MutatingAdmissionPolicies: which policies count, where, with which
--- parameters, and of the former what follows.
---
--- Rules and wordings: kubernetes/pkg/apis/admissionregistration/validation/validation.go,
--- pkg/registry/admissionregistration/{validating,mutating}admissionpolicybinding/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local rules = require "cluster.apiserver.resources.admission.rules"
local selectors = require "cluster.apiserver.resources.selectors"

local ACTIONS = { "Audit", "Deny", "Warn" }
local NOT_FOUND = { "Deny", "Allow" }
local EXCLUSIVE = "name and selector are mutually exclusive"
local DENY_AND_WARN = "must not contain both Deny and Warn (repeating the same validation failure information in the "
  .. "API response and headers serves no purpose)"


local function defaults(object)
  rules.default_resources(object.spec.matchResources)
end


local function check_reference(ref, path, errors)
  local name = ref.name or ""
  if name ~= "" then
    check.each(errors, path .. ".name", name, names.path_segment(name))
    if ref.selector then
      errors[#errors + 1] = field.forbidden(path .. ".name", EXCLUSIVE)
    end
  end
  if ref.selector then
    selectors.validate(ref.selector, path .. ".selector", errors)
    if name ~= "" then
      errors[#errors + 1] = field.forbidden(path .. ".selector", EXCLUSIVE)
    end
  elseif name == "" then
    errors[#errors + 1] = field.required(path, "one of name or selector must be specified")
  end
  local action = ref.parameterNotFoundAction or ""
  if action == "" then
    errors[#errors + 1] = field.required(path .. ".parameterNotFoundAction", "")
  elseif not check.set(NOT_FOUND)[action] then
    errors[#errors + 1] = field.not_supported(path .. ".parameterNotFoundAction", action, NOT_FOUND)
  end
end


local function check_actions(actions, path, errors)
  local seen = {}
  for i, action in ipairs(actions) do
    local at = ("%s[%d]"):format(path, i - 1)
    if not check.set(ACTIONS)[action] then
      errors[#errors + 1] = field.not_supported(at, action, ACTIONS)
    end
    if seen[action] then
      errors[#errors + 1] = field.duplicate(at, action)
    end
    seen[action] = true
  end
  if seen.Deny and seen.Warn then
    errors[#errors + 1] = field.invalid(path, actions, DENY_AND_WARN)
  end
  if #actions == 0 then
    errors[#errors + 1] = field.required(path, "at least one validation action is required")
  end
end


local function check_spec(spec, errors)
  local name = spec.policyName or ""
  if name == "" then
    errors[#errors + 1] = field.required("spec.policyName", "")
  else
    check.each(errors, "spec.policyName", name, names.subdomain(name))
  end
  if spec.paramRef then
    check_reference(spec.paramRef, "spec.paramRef", errors)
  end
  rules.validate_resources(spec.matchResources, "spec.matchResources", errors)
end


local function validate_validating(object)
  local errors = {}
  check_spec(object.spec, errors)
  check_actions(check.list(object.spec.validationActions), "spec.validationActions", errors)
  return errors
end


local function validate_mutating(object)
  local errors = {}
  check_spec(object.spec, errors)
  rules.validate_mutable(object.spec.matchResources, "spec.matchResources", errors)
  return errors
end


local function shown_reference(ref)
  local name = ref and ref.name or ""
  if name ~= "" then
    return ((ref.namespace or "") ~= "" and ref.namespace or "*") .. "/" .. name
  end
  return "<unset>"
end


local function cells(object, now)
  local spec = object.spec
  return { object.metadata.name, spec.policyName or "", shown_reference(spec.paramRef), age.of(object, now) }
end


local function strategy(validate)
  return {
    defaults = defaults, validate = validate, validate_update = validate, unconditional_update = false, cells = cells,
  }
end


return { validating = strategy(validate_validating), mutating = strategy(validate_mutating) }
