--- MutatingWebhookConfigurations and ValidatingWebhookConfigurations; admission/webhooks calls what they name.
---
--- Rules and wordings: kubernetes/pkg/apis/admissionregistration/validation/validation.go, v1/defaults.go,
--- apiserver/pkg/util/webhook/validation.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local expressions = require "cluster.apiserver.admission.expressions"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local rules = require "cluster.apiserver.resources.admission.rules"
local selectors = require "cluster.apiserver.resources.selectors"
local webhook_client_config = require "cluster.apiserver.webhook_client_config"

local M = {}

local NONE = {}
local FAILURES, MATCHES, REINVOCATIONS = { "Fail", "Ignore" }, { "Equivalent", "Exact" }, { "IfNeeded", "Never" }
local SIDE_EFFECTS, VERSIONS = { "None", "NoneOnDryRun" }, { "v1", "v1beta1" }
local TIMEOUT_MAX, SEGMENTS_MIN = 30, 3


local function set_defaults(hook)
  hook.failurePolicy = hook.failurePolicy or "Fail"
  hook.matchPolicy = hook.matchPolicy or "Equivalent"
  hook.namespaceSelector = hook.namespaceSelector or {}
  hook.objectSelector = hook.objectSelector or {}
  hook.timeoutSeconds = hook.timeoutSeconds or 10
  webhook_client_config.defaults(hook.clientConfig)
  for _, rule in ipairs(hook.rules or NONE) do
    rule.scope = rule.scope or "*"
  end
end


local function check_name(name, path, errors)
  if name == "" then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  local messages = names.subdomain(name)
  if messages then
    errors[#errors + 1] = field.invalid(path, name, table.concat(messages, ","))
  elseif select(2, name:gsub("%.", "")) < SEGMENTS_MIN - 1 then
    errors[#errors + 1] = field.invalid(path, name,
      "should be a domain with at least three segments separated by dots")
  end
end


-- One of `choices`, if it is given.
local function check_choice(value, choices, path, errors)
  if value and not check.set(choices)[value] then
    errors[#errors + 1] = field.not_supported(path, value, choices)
  end
end


local function check_versions(versions, path, errors)
  if #versions == 0 then
    errors[#errors + 1] = field.required(path, "must specify one of " .. table.concat(VERSIONS, ", "))
    return
  end
  local seen, known = {}, false
  for i, version in ipairs(versions) do
    local at = ("%s[%d]"):format(path, i - 1)
    if seen[version] then
      errors[#errors + 1] = field.invalid(at, version, "duplicate version")
    else
      seen[version] = true
      check.each(errors, at, version, names.label_1035(version))
      known = known or check.set(VERSIONS)[version]
    end
  end
  if not known then
    errors[#errors + 1] = field.invalid(path, versions, "must include at least one of " .. table.concat(VERSIONS, ", "))
  end
end


local function check_hook(hook, path, keeps_conditions, errors)
  check_name(hook.name or "", path .. ".name", errors)
  for i, rule in ipairs(hook.rules or NONE) do
    rules.validate_rule(rule, ("%s.rules[%d]"):format(path, i - 1), errors)
  end
  check_choice(hook.failurePolicy, FAILURES, path .. ".failurePolicy", errors)
  check_choice(hook.matchPolicy, MATCHES, path .. ".matchPolicy", errors)
  if not hook.sideEffects then
    errors[#errors + 1] = field.required(path .. ".sideEffects",
      "must specify one of " .. table.concat(SIDE_EFFECTS, ", "))
  end
  check_choice(hook.sideEffects, SIDE_EFFECTS, path .. ".sideEffects", errors)
  if hook.timeoutSeconds < 1 or hook.timeoutSeconds > TIMEOUT_MAX then
    errors[#errors + 1] = field.invalid(path .. ".timeoutSeconds", hook.timeoutSeconds,
      "the timeout value must be between 1 and 30 seconds")
  end
  selectors.validate(hook.namespaceSelector, path .. ".namespaceSelector", errors)
  selectors.validate(hook.objectSelector, path .. ".objectSelector", errors)
  check_choice(hook.reinvocationPolicy, REINVOCATIONS, path .. ".reinvocationPolicy", errors)
  webhook_client_config.validate(hook.clientConfig, path .. ".clientConfig", errors)
  if not keeps_conditions then
    rules.validate_conditions(hook.matchConditions, M.environment(), path .. ".matchConditions", errors)
  end
  check_versions(check.list(hook.admissionReviewVersions), path .. ".admissionReviewVersions", errors)
end


--- The environment of matchConditions: what their expressions can name.
function M.environment()
  return expressions.environment { authorizer = true }
end


-- True if there are as many hooks as before, and each has the matchConditions of the old one in its place.
local function same_conditions(new, old)
  for i = 1, math.max(#new, #old) do
    local a, b = new[i] or NONE, old[i] or NONE
    if not new[i] or not old[i] or not host.json.equal(a.matchConditions or NONE, b.matchConditions or NONE) then
      return false
    end
  end
  return true
end


local function validate(object, old)
  local errors, seen, hooks = {}, {}, check.list(object.webhooks)
  local keeps_conditions = old ~= nil and same_conditions(hooks, check.list(old.webhooks))
  for i, hook in ipairs(hooks) do
    local path = ("webhooks[%d]"):format(i - 1)
    check_hook(hook, path, keeps_conditions, errors)
    local name = hook.name or ""
    if name ~= "" and seen[name] then
      errors[#errors + 1] = field.duplicate(path .. ".name", name)
    end
    seen[name] = true
  end
  return errors
end


local function cells(object, now)
  return { object.metadata.name, #check.list(object.webhooks), age.of(object, now) }
end


--- The strategy of one of the two kinds. @param is_mutating boolean
function M.strategy(is_mutating)
  local function defaults(object)
    for _, hook in ipairs(check.list(object.webhooks)) do
      set_defaults(hook)
      if is_mutating then
        hook.reinvocationPolicy = hook.reinvocationPolicy or "Never"
      end
    end
  end
  return {
    defaults = defaults, validate = validate, validate_update = validate, unconditional_update = false, cells = cells,
  }
end


return M
