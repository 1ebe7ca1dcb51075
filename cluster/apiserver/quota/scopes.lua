--- Which objects a quota with scopes is about.
---
--- Rules: kubernetes/pkg/quota/v1/evaluator/core/{pods,persistent_volume_claims}.go (podMatchesScopeFunc,
--- pvcMatchesScopeFunc), apiserver/pkg/quota/v1/generic/evaluator.go.
local qos = require "cluster.apiserver.resources.pod.qos"

local M = {}

local NONE = {}
local AFFINITIES = { "podAffinity", "podAntiAffinity" }


--- Returns true if a pod ends by itself at some time.
function M.is_terminating(pod)
  return (pod.spec.activeDeadlineSeconds or -1) >= 0
end


local function is_of_other_namespaces(term)
  return #(term.namespaces or NONE) > 0 or term.namespaceSelector ~= nil
end


local function crosses_namespaces(pod)
  local affinity = pod.spec.affinity or NONE
  for _, kind in ipairs(AFFINITIES) do
    local rules = affinity[kind] or NONE
    for _, term in ipairs(rules.requiredDuringSchedulingIgnoredDuringExecution or NONE) do
      if is_of_other_namespaces(term) then
        return true
      end
    end
    for _, weighted in ipairs(rules.preferredDuringSchedulingIgnoredDuringExecution or NONE) do
      if is_of_other_namespaces(weighted.podAffinityTerm or NONE) then
        return true
      end
    end
  end
  return false
end


-- True if one of `found`, a list of names, meets an expression.
local function meets(expression, found)
  local operator = expression.operator
  if operator == "Exists" then
    return #found > 0
  elseif operator == "DoesNotExist" then
    return #found == 0
  end
  local wanted = {}
  for _, value in ipairs(expression.values or NONE) do
    wanted[value] = true
  end
  if #found == 0 then
    return operator == "NotIn"
  end
  for _, name in ipairs(found) do
    if (wanted[name] == true) == (operator == "In") then
      return true
    end
  end
  return false
end


-- The names of a list that are not empty.
local function given(...)
  local list = {}
  for _, name in pairs { ... } do
    list[#list + 1] = name ~= "" and name or nil
  end
  return list
end


local PODS = {
  Terminating = M.is_terminating,
  NotTerminating = function(pod) return not M.is_terminating(pod) end,
  BestEffort = function(pod) return qos.class(pod.spec) == "BestEffort" end,
  NotBestEffort = function(pod) return qos.class(pod.spec) ~= "BestEffort" end,
  PriorityClass = function(pod, expression) return meets(expression, given(pod.spec.priorityClassName)) end,
  CrossNamespacePodAffinity = crosses_namespaces,
}

local CLAIMS = {
  VolumeAttributesClass = function(claim, expression)
    local status = claim.status or NONE
    return meets(expression, given(claim.spec.volumeAttributesClassName, status.currentVolumeAttributesClassName,
      (status.modifyVolumeStatus or NONE).targetVolumeAttributesClassName))
  end,
}

local RULES = { pods = PODS, persistentvolumeclaims = CLAIMS }


--- Returns true if an object of the resource `id` meets all scopes of a quota's spec.
function M.meet(spec, id, object)
  local rules = RULES[id] or NONE
  local function meet(expression)
    local rule = rules[expression.scopeName]
    return rule ~= nil and rule(object, expression)
  end
  for _, scope in ipairs(spec.scopes or NONE) do
    if not meet { scopeName = scope, operator = "Exists" } then
      return false
    end
  end
  for _, expression in ipairs((spec.scopeSelector or NONE).matchExpressions or NONE) do
    if not meet(expression) then
      return false
    end
  end
  return true
end


return M
