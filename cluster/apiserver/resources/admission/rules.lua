--- The fields that select requests for a policy, a binding or a webhook: rules of resources, selectors, conditions.
---
--- Rules and wordings: kubernetes/pkg/apis/admissionregistration/validation/validation.go, v1/defaults.go.
local check = require "cluster.apiserver.resources.check"
local expressions = require "cluster.apiserver.admission.expressions"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local selectors = require "cluster.apiserver.resources.selectors"

local M = {}

local NONE = {}
local SCOPES = { "*", "Cluster", "Namespaced" }
local OPERATIONS = { "*", "CONNECT", "CREATE", "DELETE", "UPDATE" }
local MUTABLE_OPERATIONS = { "*", "CONNECT", "CREATE", "UPDATE" }
local MUTABLE = check.set(MUTABLE_OPERATIONS)
local MATCH_POLICIES = { "Equivalent", "Exact" }
local CONDITIONS_MAX = 64


--- One of `choices`, which has to be given.
function M.choice(value, choices, path, errors)
  if not value then
    errors[#errors + 1] = field.required(path, "")
  elseif not check.set(choices)[value] then
    errors[#errors + 1] = field.not_supported(path, value, choices)
  end
end


local function contains(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then
      return true
    end
  end
  return false
end


-- A list with something in it, in which "*" stands alone.
local function check_words(list, path, what, errors)
  if #list == 0 then
    errors[#errors + 1] = field.required(path, "")
  elseif #list > 1 and contains(list, "*") then
    errors[#errors + 1] = field.invalid(path, list, ("if '*' is present, must not specify other %s"):format(what))
  end
end


local function check_resource(text, path, seen, errors)
  local name, part = text:match "^([^/]*)/(.*)$"
  if not name then
    seen.plain = seen.plain or text ~= "*"
    return
  end
  local words = "if '%s' is present, must not specify %s"
  if seen.all_of[name] then
    errors[#errors + 1] = field.invalid(path, text, words:format(name .. "/*", text))
  end
  if seen.of_all[part] then
    errors[#errors + 1] = field.invalid(path, text, words:format("*/" .. part, text))
  end
  seen.all_of[name] = seen.all_of[name] or part == "*"
  seen.of_all[part] = seen.of_all[part] or name == "*"
end


local function check_resources(list, path, errors)
  if #list == 0 then
    errors[#errors + 1] = field.required(path, "")
  end
  local seen = { all_of = {}, of_all = {}, plain = false }
  for i, text in ipairs(list) do
    local at = ("%s[%d]"):format(path, i - 1)
    if text == "" then
      errors[#errors + 1] = field.required(at, "")
    else
      check_resource(text, at, seen, errors)
    end
  end
  if #list > 1 and contains(list, "*/*") then
    errors[#errors + 1] = field.invalid(path, list, "if '*/*' is present, must not specify other resources")
  end
  if contains(list, "*") and seen.plain then
    errors[#errors + 1] = field.invalid(path, list,
      "if '*' is present, must not specify other resources without subresources")
  end
end


--- A rule with operations.
function M.validate_rule(rule, path, errors)
  local operations = check.list(rule.operations)
  check_words(operations, path .. ".operations", "operations", errors)
  for i, operation in ipairs(operations) do
    if not check.set(OPERATIONS)[operation] then
      errors[#errors + 1] = field.not_supported(("%s.operations[%d]"):format(path, i - 1), operation, OPERATIONS)
    end
  end
  check_words(check.list(rule.apiGroups), path .. ".apiGroups", "API groups", errors)
  check_words(check.list(rule.apiVersions), path .. ".apiVersions", "API versions", errors)
  for i, version in ipairs(check.list(rule.apiVersions)) do
    if version == "" then
      errors[#errors + 1] = field.required(("%s.apiVersions[%d]"):format(path, i - 1), "")
    end
  end
  check_resources(check.list(rule.resources), path .. ".resources", errors)
  if rule.scope and not check.set(SCOPES)[rule.scope] then
    errors[#errors + 1] = field.not_supported(path .. ".scope", rule.scope, SCOPES)
  end
end


local function validate_named(rule, path, errors)
  local seen = {}
  for i, name in ipairs(rule.resourceNames or NONE) do
    local at = ("%s.resourceNames[%d]"):format(path, i - 1)
    check.each(errors, at, name, names.path_segment(name))
    if seen[name] then
      errors[#errors + 1] = field.duplicate(at, name)
    end
    seen[name] = true
  end
  M.validate_rule(rule, path, errors)
end


--- Fills in what matchConstraints or matchResources do not say; nil is fine.
function M.default_resources(resources)
  if not resources then
    return
  end
  resources.matchPolicy = resources.matchPolicy or "Equivalent"
  resources.namespaceSelector = resources.namespaceSelector or {}
  resources.objectSelector = resources.objectSelector or {}
  for _, list in ipairs { resources.resourceRules or NONE, resources.excludeResourceRules or NONE } do
    for _, rule in ipairs(list) do
      rule.scope = rule.scope or "*"
    end
  end
end


--- matchConstraints of a policy, matchResources of a binding; nil is fine.
function M.validate_resources(resources, path, errors)
  if not resources then
    return
  end
  M.choice(resources.matchPolicy, MATCH_POLICIES, path .. ".matchPolicy", errors)
  selectors.validate(resources.namespaceSelector, path .. ".namespaceSelector", errors)
  selectors.validate(resources.objectSelector, path .. ".objectSelector", errors)
  for _, name in ipairs { "resourceRules", "excludeResourceRules" } do
    for i, rule in ipairs(resources[name] or NONE) do
      validate_named(rule, ("%s.%s[%d]"):format(path, name, i - 1), errors)
    end
  end
end


--- Deletions cannot be changed: the operations of matchConstraints or matchResources; nil is fine.
function M.validate_mutable(resources, path, errors)
  for _, rule in ipairs(resources and resources.resourceRules or {}) do
    for _, operation in ipairs(rule.operations or {}) do
      if not MUTABLE[operation] then
        errors[#errors + 1] = field.not_supported(path .. ".resourceRules.operations", operation, MUTABLE_OPERATIONS)
      end
    end
  end
end


local function trim(text)
  return (text or ""):match "^%s*(.-)%s*$"
end


--- An expression that has to be there, and to compile.
--- @param missing string what is told when it is not there
function M.validate_expression(text, env, wanted, path, missing, errors)
  if trim(text) == "" then
    errors[#errors + 1] = field.required(path, missing)
    return
  end
  local program, why = expressions.compile(env, text, wanted)
  if not program then
    errors[#errors + 1] = field.invalid(path, text, why)
  end
end


--- matchConditions: of a policy or a webhook.
--- @param env table of expressions
function M.validate_conditions(conditions, env, path, errors)
  conditions = conditions or NONE
  if #conditions > CONDITIONS_MAX then
    errors[#errors + 1] = field.too_many(path, #conditions, CONDITIONS_MAX)
  end
  local seen = {}
  for i, condition in ipairs(conditions) do
    local at, name = ("%s[%d]"):format(path, i - 1), condition.name or ""
    M.validate_expression(trim(condition.expression), env, expressions.BOOL, at .. ".expression", "", errors)
    if name == "" then
      errors[#errors + 1] = field.required(at .. ".name", "")
    else
      check.each(errors, at .. ".name", name, names.qualified(name))
      if seen[name] then
        errors[#errors + 1] = field.duplicate(at .. ".name", name)
      end
      seen[name] = true
    end
  end
end


return M
