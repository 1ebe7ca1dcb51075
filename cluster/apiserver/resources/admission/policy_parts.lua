--- The common parts of ValidatingAdmissionPolicies and MutatingAdmissionPolicies.
---
--- Rules and wordings: kubernetes/pkg/apis/admissionregistration/validation/validation.go,
--- pkg/registry/admissionregistration/{validating,mutating}admissionpolicy/authz.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local rules = require "cluster.apiserver.resources.admission.rules"

local M = {}

local NONE = {}
local FAILURES = { "Fail", "Ignore" }
local RESERVED = check.set { "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
  "function", "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while" }


local function trim(text)
  return (text or ""):match "^%s*(.-)%s*$"
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


-- Checks the kind of a policy's parameters.
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


-- @param compiled table of expressions.of_policy
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


-- matchConstraints, which have to be there.
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


--- Fills in what both kinds have.
function M.defaults(object)
  local spec = object.spec
  spec.failurePolicy = spec.failurePolicy or "Fail"
  rules.default_resources(spec.matchConstraints)
end


--- The parts of a policy's spec that both kinds have.
--- @param envs table of expressions.of_policy  @param same_conditions boolean whether matchConditions are as they were
--- @param mutates boolean
function M.check_spec(spec, envs, same_conditions, mutates, errors)
  rules.choice(spec.failurePolicy, FAILURES, "spec.failurePolicy", errors)
  if spec.paramKind then
    check_param_kind(spec.paramKind, "spec.paramKind", errors)
  end
  check_constraints(spec.matchConstraints, "spec.matchConstraints", errors)
  if mutates then
    rules.validate_mutable(spec.matchConstraints, "spec.matchConstraints", errors)
  end
  if not same_conditions then
    rules.validate_conditions(spec.matchConditions, envs.conditions, "spec.matchConditions", errors)
  end
  for i, variable in ipairs(spec.variables or NONE) do
    check_variable(variable, envs.variables[i], ("spec.variables[%d]"):format(i - 1), errors)
  end
end


-- The author of a policy must be able to read its parameters. @return table|nil a field error
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


--- The rules of a policy's parts, in their order, and then whether its author may read its parameters.
--- @param check_spec function(object, same_conditions) → errors; same_conditions: matchConditions are as they were
function M.validator(check_spec)
  return function(object, old, request, earlier)
    local before = old and old.spec
    local same_kind = before and host.json.equal(object.spec.paramKind, before.paramKind)
    local errors = check_spec(object,
      same_kind and host.json.equal(object.spec.matchConditions, before.matchConditions))
    if #errors == 0 and #(earlier or NONE) == 0 and object.spec.paramKind and not same_kind then
      errors[1] = unreadable(object.spec, request)
    end
    return errors
  end
end


--- Returns spec.paramKind as tables show it.
function M.shown_kind(kind)
  return kind and (kind.apiVersion or "") .. "/" .. (kind.kind or "") or "<unset>"
end


return M
