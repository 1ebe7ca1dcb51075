--- The rules for placing a pod: tolerations, affinity, spread.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateTolerations, validateAffinity,
--- validateTopologySpreadConstraints).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local selectors = require "cluster.apiserver.resources.selectors"

local M = {}

local NONE = {}
local EFFECTS = { "NoSchedule", "PreferNoSchedule", "NoExecute" }
local EXISTS = { Exists = true, DoesNotExist = true }
local PREFERRED, REQUIRED = "preferredDuringSchedulingIgnoredDuringExecution",
  "requiredDuringSchedulingIgnoredDuringExecution"


local function check_operator(toleration, path, errors)
  local operator, value = toleration.operator or "", toleration.value or ""
  if operator == "" or operator == "Equal" then
    local messages = names.label_value(value)
    if messages then
      errors[#errors + 1] = field.invalid(path, value, table.concat(messages, ";"))
    end
  elseif operator == "Exists" then
    if value ~= "" then
      errors[#errors + 1] = field.invalid(path, value, "value must be empty when `operator` is 'Exists'")
    end
  elseif operator == "Lt" or operator == "Gt" then
    errors[#errors + 1] = field.not_supported(path, operator, { "Equal", "Exists", "Lt", "Gt" })
  else
    errors[#errors + 1] = field.not_supported(path, operator, { "Equal", "Exists" })
  end
end


local function check_toleration(toleration, path, errors)
  if toleration.key then
    check.each(errors, path .. ".key", toleration.key, names.qualified(toleration.key))
  elseif toleration.operator ~= "Exists" then
    errors[#errors + 1] = field.invalid(path .. ".operator", toleration.operator or "",
      'operator must be Exists when `key` is empty, which means "match all values and all keys"')
  end
  if toleration.tolerationSeconds and toleration.effect ~= "NoExecute" then
    errors[#errors + 1] = field.invalid(path .. ".effect", toleration.effect or "",
      "effect must be 'NoExecute' when `tolerationSeconds` is set")
  end
  check_operator(toleration, path .. ".operator", errors)
  if toleration.effect then
    check.choice(toleration.effect, EFFECTS, path .. ".effect", errors)
  end
end


local function check_node_requirement(requirement, path, errors)
  local operator, values = requirement.operator, check.list(requirement.values)
  if operator == "In" or operator == "NotIn" then
    if #values == 0 then
      errors[#errors + 1] = field.required(path .. ".values",
        "must be specified when `operator` is 'In' or 'NotIn'")
    end
  elseif EXISTS[operator] then
    if #values > 0 then
      errors[#errors + 1] = field.forbidden(path .. ".values",
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    end
  elseif operator == "Gt" or operator == "Lt" then
    if #values ~= 1 then
      errors[#errors + 1] = field.required(path .. ".values",
        "must be specified single value when `operator` is 'Lt' or 'Gt'")
    end
  else
    errors[#errors + 1] = field.invalid(path .. ".operator", operator, "not a valid selector operator")
  end
  check.each(errors, path .. ".key", requirement.key, names.qualified(requirement.key))
end


local function check_node_term(term, path, errors)
  for i, requirement in ipairs(term.matchExpressions or NONE) do
    check_node_requirement(requirement, ("%s.matchExpressions[%d]"):format(path, i - 1), errors)
  end
end


local function check_weight(weight, path, errors)
  if weight < 1 or weight > 100 then
    errors[#errors + 1] = field.invalid(path, weight, "must be in the range 1-100")
  end
end


--- A selector of nodes.
function M.node_selector(selector, path, errors)
  local terms = check.list(selector.nodeSelectorTerms)
  path = path .. ".nodeSelectorTerms"
  if #terms == 0 then
    errors[#errors + 1] = field.required(path, "must have at least one node selector term")
  end
  for i, term in ipairs(terms) do
    check_node_term(term, ("%s[%d]"):format(path, i - 1), errors)
  end
end


local function check_node_affinity(affinity, path, errors)
  local required = affinity[REQUIRED]
  if required then
    M.node_selector(required, path .. "." .. REQUIRED, errors)
  end
  for i, preferred in ipairs(affinity[PREFERRED] or NONE) do
    local at = ("%s.%s[%d]"):format(path, PREFERRED, i - 1)
    check_weight(preferred.weight, at .. ".weight", errors)
    check_node_term(preferred.preference, at .. ".preference", errors)
  end
end


local function check_pod_term(term, path, errors)
  selectors.validate(term.labelSelector, path .. ".labelSelector", errors)
  selectors.validate(term.namespaceSelector, path .. ".namespaceSelector", errors)
  for i, name in ipairs(term.namespaces or NONE) do
    check.each(errors, ("%s.namespaces[%d]"):format(path, i - 1), name, names.label(name))
  end
  if term.topologyKey == "" then
    errors[#errors + 1] = field.required(path .. ".topologyKey", "can not be empty")
  end
  check.each(errors, path .. ".topologyKey", term.topologyKey, names.qualified(term.topologyKey))
end


local function check_pod_affinity(affinity, path, errors)
  for i, term in ipairs(affinity[REQUIRED] or NONE) do
    check_pod_term(term, ("%s.%s[%d]"):format(path, REQUIRED, i - 1), errors)
  end
  for i, weighted in ipairs(affinity[PREFERRED] or NONE) do
    local at = ("%s.%s[%d]"):format(path, PREFERRED, i - 1)
    check_weight(weighted.weight, at .. ".weight", errors)
    check_pod_term(weighted.podAffinityTerm, at .. ".podAffinityTerm", errors)
  end
end


local function check_spread(constraint, path, errors)
  if constraint.maxSkew <= 0 then
    errors[#errors + 1] = field.invalid(path .. ".maxSkew", constraint.maxSkew, "must be greater than zero")
  end
  if constraint.topologyKey == "" then
    errors[#errors + 1] = field.required(path .. ".topologyKey", "can not be empty")
  end
  check.choice(constraint.whenUnsatisfiable, { "DoNotSchedule", "ScheduleAnyway" }, path .. ".whenUnsatisfiable",
    errors)
  selectors.validate(constraint.labelSelector, path .. ".labelSelector", errors)
end


--- affinity of a pod.
function M.affinity(affinity, path, errors)
  if affinity.nodeAffinity then
    check_node_affinity(affinity.nodeAffinity, path .. ".nodeAffinity", errors)
  end
  for _, name in ipairs { "podAffinity", "podAntiAffinity" } do
    if affinity[name] then
      check_pod_affinity(affinity[name], path .. "." .. name, errors)
    end
  end
end


--- tolerations of a pod.
function M.tolerations(list, path, errors)
  for i, toleration in ipairs(list) do
    check_toleration(toleration, ("%s[%d]"):format(path, i - 1), errors)
  end
end


--- topologySpreadConstraints of a pod.
function M.spread(list, path, errors)
  for i, constraint in ipairs(list) do
    check_spread(constraint, ("%s[%d]"):format(path, i - 1), errors)
  end
end


return M
