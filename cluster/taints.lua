--- Taints of nodes and tolerations of pods, for the controllers and the kubelet's scheduler.
---
--- Rules: k8s.io/api/core/v1/toleration.go, kubernetes/pkg/apis/core/v1/helper/helpers.go (GetMatchingTolerations).
local M = {}

local NONE = {}


local function tolerates(toleration, taint)
  local operator = toleration.operator or "Equal"
  return (toleration.effect or taint.effect) == taint.effect and (toleration.key or taint.key) == taint.key
    and (operator == "Exists" or operator == "Equal" and (toleration.value or "") == (taint.value or ""))
end


--- The first of a pod's tolerations that tolerates a taint, or nil.
--- @param tolerations table|nil  @param taint table { key =, value =, effect = }
function M.toleration_of(tolerations, taint)
  for _, toleration in ipairs(tolerations or NONE) do
    if tolerates(toleration, taint) then
      return toleration
    end
  end
end


--- The taints of a node that have one of these effects.
--- @param taints table|nil of the node's spec  @param effects table set
function M.with_effect(taints, effects)
  local list = {}
  for _, taint in ipairs(taints or NONE) do
    list[#list + 1] = effects[taint.effect] and taint or nil
  end
  return list
end


return M
