--- On which nodes the pods of a DaemonSet belong.
---
--- Rules: kubernetes/pkg/controller/daemon/daemon_controller.go (NodeShouldRunDaemonPod),
--- pkg/controller/daemon/util/daemonset_util.go, component-helpers/scheduling/corev1/nodeaffinity.
local host = require "cluster.host"
local taints = require "cluster.taints"

local M = {}

local NONE = {}
local NAME = "metadata.name"
-- Taints that pods of DaemonSets tolerate.
local TOLERATED = {
  { "node.kubernetes.io/not-ready", "NoExecute" }, { "node.kubernetes.io/unreachable", "NoExecute" },
  { "node.kubernetes.io/disk-pressure", "NoSchedule" }, { "node.kubernetes.io/memory-pressure", "NoSchedule" },
  { "node.kubernetes.io/pid-pressure", "NoSchedule" }, { "node.kubernetes.io/unschedulable", "NoSchedule" },
}
local OF_HOST_NETWORK = { "node.kubernetes.io/network-unavailable", "NoSchedule" }


local function has(values, value)
  for _, other in ipairs(values or NONE) do
    if other == value then
      return true
    end
  end
  return false
end


local function meets(expression, value)
  local operator, values = expression.operator, expression.values
  if operator == "Exists" then
    return value ~= nil
  elseif operator == "DoesNotExist" then
    return value == nil
  elseif operator == "In" then
    return value ~= nil and has(values, value)
  elseif operator == "NotIn" then
    return not has(values, value)
  end
  local number, bound = math.tointeger(tonumber(value)), math.tointeger(tonumber((values or NONE)[1]))
  if not number or not bound then
    return false
  elseif operator == "Gt" then
    return number > bound
  end
  return number < bound
end


local function term_fits(term, node)
  if not next(term.matchExpressions or NONE) and not next(term.matchFields or NONE) then
    return false
  end
  for _, expression in ipairs(term.matchExpressions or NONE) do
    if not meets(expression, (node.metadata.labels or NONE)[expression.key]) then
      return false
    end
  end
  for _, expression in ipairs(term.matchFields or NONE) do
    if not meets(expression, expression.key == NAME and node.metadata.name or nil) then
      return false
    end
  end
  return true
end


-- The node affinity that a pod requires, or nil.
local function required_of(spec)
  local affinity = (spec.affinity or NONE).nodeAffinity
  return affinity and affinity.requiredDuringSchedulingIgnoredDuringExecution
end


local function affinity_fits(spec, node)
  local required = required_of(spec)
  if not required then
    return true
  end
  for _, term in ipairs(required.nodeSelectorTerms or NONE) do
    if term_fits(term, node) then
      return true
    end
  end
  return false
end


-- Adds the tolerations that pods of DaemonSets have.
local function add_tolerations(spec)
  local list, wanted = spec.tolerations or host.json.array {}, { table.unpack(TOLERATED) }
  wanted[#wanted + 1] = spec.hostNetwork and OF_HOST_NETWORK or nil
  for _, pair in ipairs(wanted) do
    local found = false
    for _, other in ipairs(list) do
      found = found or other.key == pair[1] and other.effect == pair[2] and other.operator == "Exists"
    end
    if not found then
      list[#list + 1] = { key = pair[1], operator = "Exists", effect = pair[2] }
    end
  end
  spec.tolerations = list
end


--- Decides if pods of that spec belong on a node, and if those that are there may stay.
--- @return boolean run
--- @return boolean stay
function M.fits(spec, node)
  if spec.nodeName and spec.nodeName ~= node.metadata.name then
    return false, false
  end
  for key, value in pairs(spec.nodeSelector or NONE) do
    if (node.metadata.labels or NONE)[key] ~= value then
      return false, false
    end
  end
  if not affinity_fits(spec, node) then
    return false, false
  end
  local own, run, stay = { tolerations = spec.tolerations and host.json.copy(spec.tolerations) }, true, true
  add_tolerations(own)
  for _, taint in ipairs(node.spec.taints or NONE) do
    local tolerated = taint.effect == "PreferNoSchedule" or taints.toleration_of(own.tolerations, taint) ~= nil
    run = run and tolerated
    stay = stay and (tolerated or taint.effect ~= "NoExecute")
  end
  return run, stay
end


--- Makes a new pod's spec one for that node.
function M.bind(spec, name)
  local field = { matchFields = host.json.array { { key = NAME, operator = "In", values = host.json.array { name } } } }
  local required = required_of(spec)
  if required and next(required.nodeSelectorTerms or NONE) then
    for _, term in ipairs(required.nodeSelectorTerms) do
      term.matchFields = host.json.copy(field.matchFields)
    end
  else
    spec.affinity = spec.affinity or {}
    spec.affinity.nodeAffinity = spec.affinity.nodeAffinity or {}
    spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution = {
      nodeSelectorTerms = host.json.array { field },
    }
  end
  add_tolerations(spec)
end


--- The name of the node that a pod of a DaemonSet is for, or nil.
function M.of(pod)
  if (pod.spec.nodeName or "") ~= "" then
    return pod.spec.nodeName
  end
  local required = required_of(pod.spec)
  for _, term in ipairs(required and required.nodeSelectorTerms or NONE) do
    for _, expression in ipairs(term.matchFields or NONE) do
      if expression.key == NAME and expression.operator == "In" then
        return expression.values[1]
      end
    end
  end
end


return M
