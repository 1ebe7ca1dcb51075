--- ResourceQuotas; quota/ holds requests to them, controllers/resourcequota.lua counts what is used.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateResourceQuota), pkg/apis/core/helper/helpers.go,
--- pkg/registry/core/resourcequota/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local lists = require "cluster.apiserver.resources.resource_lists"
local host = require "cluster.host"
local quantity = require "cluster.quantity"
local resource_names = require "cluster.apiserver.resources.resource_names"
local workload = require "cluster.apiserver.resources.workload"

local NONE = {}
local COMPUTE = check.set {
  "pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory",
}
-- Scope → the resources that it can limit.
local SCOPES = {
  Terminating = COMPUTE, NotTerminating = COMPUTE, NotBestEffort = COMPUTE, PriorityClass = COMPUTE,
  CrossNamespacePodAffinity = COMPUTE, BestEffort = { pods = true },
  VolumeAttributesClass = { persistentvolumeclaims = true, ["requests.storage"] = true },
}
-- Scopes that cannot be compared with values.
local PLAIN = check.set { "BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity" }
local CONFLICTS = { { "BestEffort", "NotBestEffort" }, { "NotTerminating", "Terminating" } }
local NOT_PLAIN = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
  .. "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
  .. "ResourceQuotaScopeCrossNamespacePodAffinity"


local function round(amounts)
  for name, text in pairs(amounts or NONE) do
    amounts[name] = quantity.milli(text)
  end
end


-- Drops the empty list of values of an operator that takes none; any other operator is refused with an empty list.
local function drop_empty_values(selector)
  for _, expression in ipairs(selector and selector.matchExpressions or NONE) do
    local operator = expression.operator
    if (operator == "Exists" or operator == "DoesNotExist") and expression.values and #expression.values == 0 then
      expression.values = nil
    end
  end
end


local function defaults(object)
  drop_empty_values(object.spec.scopeSelector)
  round(object.spec.hard)
  round(object.status.hard)
  round(object.status.used)
end


local function check_amounts(amounts, path, errors)
  for _, name in ipairs(check.sorted_keys(amounts)) do
    local at, text = ("%s[%s]"):format(path, name), amounts[name]
    resource_names.check_quota(name, at, errors)
    local amount = quantity.parse(text)
    if amount and quantity.sign(amount) < 0 then
      errors[#errors + 1] = field.invalid(at, text, "must be greater than or equal to 0")
    end
    if amount and resource_names.is_whole(name) and not quantity.is_whole(amount) then
      errors[#errors + 1] = field.invalid(at, text, "must be an integer")
    end
  end
end


-- A scope that does not fit something that the quota limits; `scopes_text`, a text, stands in the error.
local function check_fit(scope, hard, path, scopes_text, errors)
  for _, name in ipairs(check.sorted_keys(hard)) do
    if resource_names.is_of_quota(name) and SCOPES[scope] and not SCOPES[scope][name] then
      errors[#errors + 1] = check.invalid_text(path, scopes_text, "unsupported scope applied to resource")
    end
  end
end


-- A selector of scopes as its internal type in Go is printed.
local function shown_selector(selector)
  local parts = {}
  for i, expression in ipairs(selector.matchExpressions) do
    parts[i] = check.go_struct {
      { "ScopeName", expression.scopeName }, { "Operator", expression.operator }, { "Values", expression.values },
    }
  end
  return check.go_struct { { "MatchExpressions", "[" .. table.concat(parts, ",") .. "]", true } }
end


local function check_conflicts(found, path, scopes, errors)
  for _, pair in ipairs(CONFLICTS) do
    if found[pair[1]] and found[pair[2]] then
      errors[#errors + 1] = field.invalid(path, scopes or host.json.null, "conflicting scopes")
    end
  end
end


local function check_scopes(spec, errors)
  local path, scopes = "spec.scopes", spec.scopes
  for _, scope in ipairs(scopes or NONE) do
    if not SCOPES[scope] then
      errors[#errors + 1] = field.invalid(path, scopes, "unsupported scope")
    end
    check_fit(scope, spec.hard, path, host.json.encode(scopes), errors)
  end
  check_conflicts(check.set(scopes or NONE), path, scopes, errors)
end


local function check_expression(expression, path, errors)
  local operator, values = expression.operator, expression.values or NONE
  if PLAIN[expression.scopeName] and operator ~= "Exists" then
    errors[#errors + 1] = field.invalid(path .. ".operator", operator, NOT_PLAIN)
  end
  if operator == "In" or operator == "NotIn" then
    if #values == 0 then
      errors[#errors + 1] = field.required(path .. ".values",
        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
    end
  elseif operator ~= "Exists" and operator ~= "DoesNotExist" then
    errors[#errors + 1] = field.invalid(path .. ".operator", operator, "not a valid selector operator")
  elseif #values > 0 then
    errors[#errors + 1] = field.invalid(path .. ".values", values,
      "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
  end
end


local function check_selector(spec, errors)
  local selector, path, found = spec.scopeSelector, "spec.scopeSelector.matchExpressions", {}
  for _, expression in ipairs(selector and selector.matchExpressions or NONE) do
    local scope = expression.scopeName
    if not SCOPES[scope] then
      errors[#errors + 1] = field.invalid(path .. ".scopeName", scope, "unsupported scope")
    end
    check_fit(scope, spec.hard, path, shown_selector(selector), errors)
    check_expression(expression, path, errors)
    found[scope] = true
  end
  check_conflicts(found, path, spec.scopes, errors)
end


local function validate(object)
  local errors, spec = {}, object.spec
  check_amounts(spec.hard, "spec.hard", errors)
  check_scopes(spec, errors)
  check_selector(spec, errors)
  return errors
end


local function same_scopes(a, b)
  return host.json.equal(check.set(a or NONE), check.set(b or NONE))
end


local function validate_update(new, old)
  local errors = validate(new)
  if not same_scopes(new.spec.scopes, old.spec.scopes) then
    errors[#errors + 1] = field.invalid("spec.scopes", new.spec.scopes or host.json.null, "field is immutable")
  end
  return errors
end


local function validate_status(new)
  local errors = {}
  check_amounts(new.status.hard, "status.hard", errors)
  check_amounts(new.status.used, "status.used", errors)
  return errors
end


-- Requests that are more than limits can never be used.
local function warnings(object, old)
  local list, hard = {}, object.spec.hard or NONE
  for _, name in ipairs(old and NONE or { "cpu", "memory", "storage", "ephemeral-storage" }) do
    local key = "requests." .. name
    if not hard[key] and (name == "cpu" or name == "memory") then
      key = hard[name] and name or key
    end
    local limit = "limits." .. name
    if hard[key] and hard[limit] and lists.compare(hard[key], hard[limit]) > 0 then
      list[#list + 1] = ("ResourceQuota %s (%s) should be less than %s (%s)"):format(key, hard[key], limit, hard[limit])
    end
  end
  return list
end


local function cells(obj, now)
  local status, requests, limits = obj.status or NONE, {}, {}
  for _, name in ipairs(check.sorted_keys(status.hard)) do
    local list = name:find("^limits%.") and limits or requests
    list[#list + 1] = ("%s: %s/%s"):format(name, (status.used or NONE)[name] or "0", status.hard[name])
  end
  return { obj.metadata.name, table.concat(requests, ", "), table.concat(limits, ", "), age.of(obj, now) }
end


return {
  spec_changed = false,
  defaults = defaults,
  prepare_create = function(object)
    object.status = {}
  end,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  warnings = warnings,
  validate = validate,
  validate_update = validate_update,
  validate_status = validate_status,
  cells = cells,
}
