--- Why the one node does not take a pod, as a scheduler says it.
---
--- Rules: kubernetes/pkg/scheduler/framework/plugins/{nodeunschedulable,tainttoleration,nodeaffinity,nodeports,
--- volumebinding}, in this order.
local store = require "cluster.apiserver.store"
local taints = require "cluster.taints"

local M = {}

--- The name of the check of ports, and what it says.
M.PORTS, M.NO_PORTS = "NodePorts", "node(s) didn't have free ports for the requested pod ports"

local PODS = { api_version = "v1", kind = "Pod" }
local CORDON = { key = "node.kubernetes.io/unschedulable", effect = "NoSchedule" }
local KEEPS_AWAY = { NoSchedule = true, NoExecute = true }
local ANY = { [""] = true, ["0.0.0.0"] = true, ["::"] = true }
local ENDED = { Succeeded = true, Failed = true }


local function labels_match(wanted, labels)
  for key, value in pairs(wanted or {}) do
    if labels[key] ~= value then
      return false
    end
  end
  return true
end


local function tolerates_all(pod, node)
  for _, taint in ipairs(taints.with_effect(node.spec.taints, KEEPS_AWAY)) do
    if not taints.toleration_of(pod.spec.tolerations, taint) then
      return false
    end
  end
  return true
end


local function add_ports(list, containers, wants)
  for _, container in ipairs(containers or {}) do
    for _, port in ipairs(wants(container) and container.ports or {}) do
      list[#list + 1] = (port.hostPort or 0) > 0 and port or nil
    end
  end
  return list
end


-- The ports of the node that a pod asks for.
local function ports_of(pod)
  local list = add_ports({}, pod.spec.containers, function() return true end)
  return add_ports(list, pod.spec.initContainers, function(container) return container.restartPolicy == "Always" end)
end


--- Returns true if a pod asks for ports of the node.
function M.uses_host_ports(pod)
  return ports_of(pod)[1] ~= nil
end


local function clash(one, other)
  local address, another = one.hostIP or "", other.hostIP or ""
  return one.hostPort == other.hostPort and (one.protocol or "TCP") == (other.protocol or "TCP")
    and (ANY[address] or ANY[another] or address == another)
end


local function clash_any(some, others)
  for _, one in ipairs(some) do
    for _, other in ipairs(others) do
      if clash(one, other) then
        return true
      end
    end
  end
  return false
end


--- Returns true if another pod of the node has one of the ports that a pod asks for. For a pod that is not scheduled
--- yet, the others are all pods assigned to the node; for one that names the node itself, the pods that run there.
function M.has_port_conflict(kubelet, pod)
  local wanted, found = ports_of(pod), false
  if not wanted[1] then
    return false
  end
  local function is_before(entry)
    if entry.uid == pod.metadata.uid or ENDED[entry.fields["status.phase"]] then
      return false
    elseif pod.spec.nodeName then
      return kubelet.workers[entry.uid] ~= nil
    end
    return (entry.fields["spec.nodeName"] or "") ~= ""
  end
  kubelet.server.store:collection("pods"):each(nil, nil, function(entry)
    if not found and is_before(entry) then
      found = clash_any(wanted, ports_of(store.object(PODS, entry)))
    end
  end)
  return found
end


-- Why a pod cannot have a claim, or nil.
local function claim_problem(claim, name)
  local phase = claim and (claim.status or {}).phase
  if not claim then
    return ("persistentvolumeclaim %q not found"):format(name)
  elseif phase == "Lost" then
    return ("persistentvolumeclaim %q bound to non-existent persistentvolume %q"):format(name, claim.spec.volumeName)
  elseif claim.metadata.deletionTimestamp then
    return ("persistentvolumeclaim %q is being deleted"):format(name)
  elseif phase ~= "Bound" then
    return "pod has unbound immediate PersistentVolumeClaims"
  end
end


-- The same for the first of its claims that it cannot have.
local function claims_problem(kubelet, pod)
  for _, volume in ipairs(pod.spec.volumes or {}) do
    local name = (volume.persistentVolumeClaim or {}).claimName
    local why = name and claim_problem(kubelet.read("PersistentVolumeClaim", pod.metadata.namespace, name), name)
    if why then
      return why
    end
  end
end


-- Nothing here allocates devices.
local function devices_problem(pod)
  local wanted = (pod.spec.resourceClaims or {})[1]
  return wanted and ("resource claim %q is only stored, no device is allocated here"):format(wanted.name)
end


local function problem(kubelet, pod)
  local node = kubelet.read("Node", nil, kubelet.name) or { metadata = {}, spec = {} }
  if node.spec.unschedulable and not taints.toleration_of(pod.spec.tolerations, CORDON) then
    return "1 node(s) were unschedulable"
  elseif not tolerates_all(pod, node) then
    return "1 node(s) had untolerated taint(s)"
  elseif not labels_match(pod.spec.nodeSelector, node.metadata.labels or {}) then
    return "1 node(s) didn't match Pod's node affinity/selector"
  elseif kubelet.pod_capacity:is_full() then
    return "1 Too many pods"
  elseif M.has_port_conflict(kubelet, pod) then
    kubelet.is_short_of_ports = true
    return "1 " .. M.NO_PORTS
  end
  return claims_problem(kubelet, pod) or devices_problem(pod)
end


--- @return string|nil why the node does not take the pod
function M.problem(kubelet, pod)
  local why = problem(kubelet, pod)
  return why and ("0/1 nodes are available: %s."):format(why)
end


return M
