--- Deletes pods from nodes with NoExecute taints that they do not tolerate, or no longer than so many seconds.
---
--- Rules: kubernetes/pkg/controller/tainteviction/taint_eviction.go.
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local store = require "cluster.apiserver.store"
local taints = require "cluster.taints"

local M = {}

local NODE = { api_version = "v1", kind = "Node" }
local EVICTS = { NoExecute = true }
local NONE = {}

-- By a node's entry, which never changes.
local evicting = setmetatable({}, { __mode = "k" })


-- The taints of a node that evict pods.
local function taints_of(entry)
  if entry and not evicting[entry] then
    evicting[entry] = taints.with_effect(store.object(NODE, entry).spec.taints, EVICTS)
  end
  return entry and evicting[entry] or NONE
end


-- How long a pod may stay at a node with these taints: 0, seconds, or nil, as long as it likes.
local function seconds_left(pod, list)
  local least
  for _, taint in ipairs(list) do
    local toleration = taints.toleration_of(pod.spec.tolerations, taint)
    local seconds = toleration and toleration.tolerationSeconds
    if not toleration then
      return 0
    elseif seconds then
      least = math.min(least or seconds, math.max(seconds, 0))
    end
  end
  return least
end


local function tell(api, pod, format)
  api.event(pod, "Normal", "TaintManagerEviction", format:format(pod.metadata.namespace, pod.metadata.name))
end


local function set_condition(pod)
  local status = pod.status
  local list = status.conditions or host.json.array {}
  local at = #list + 1
  for i, condition in ipairs(list) do
    at = condition.type == "DisruptionTarget" and i or at
  end
  list[at] = {
    type = "DisruptionTarget", status = "True", reason = "DeletionByTaintManager",
    message = "Taint manager: deleting due to NoExecute taint", lastTransitionTime = host.timestamp(),
    observedGeneration = pod.metadata.generation,
  }
  status.conditions = list
end


local function evict(api, pod)
  pod.status = pod.status or {}
  set_condition(pod)
  api.write_part(pod, "status")
  tell(api, pod, "Marking for deletion Pod %s/%s")
  api.delete(pod)
end


-- @param due table key → when a pod is to go
-- @return integer|nil seconds after which to look again
local function reconcile(server, due, api, pod)
  local key = pod.metadata.namespace .. "/" .. pod.metadata.name
  if pod.metadata.deletionTimestamp then
    due[key] = nil
    return nil
  end
  local left = seconds_left(pod, taints_of(server.store:get("nodes", "", pod.spec.nodeName or "")))
  if due[key] and (not left or left == 0) then
    due[key] = nil
    tell(api, pod, "Cancelling deletion of Pod %s/%s")
  elseif left and left > 0 then
    due[key] = due[key] or host.monotonic() + left
    left = math.max(due[key] - host.monotonic(), 0)
  end
  if left == 0 then
    due[key] = nil
    evict(api, pod)
    return nil
  end
  return left
end


-- Returns true if any node has taints that evict pods.
local function any_evicts(server)
  local found = false
  server.store:collection("nodes"):each(nil, nil, function(entry)
    found = found or #taints_of(entry) > 0
  end)
  return found
end


-- The pods of a node whose taints have changed.
local function pods_at(server)
  return function(node, previous)
    local keys = {}
    if host.json.equal(taints_of(node), taints_of(previous)) then
      return keys
    end
    server.store:collection("pods"):each(nil, nil, function(entry)
      if entry.fields["spec.nodeName"] == node.name then
        keys[#keys + 1] = entry.namespace .. "/" .. entry.name
      end
    end)
    return keys
  end
end


--- Starts the controller.
function M.start(server)
  local due = {}
  controller.start(server, {
    name = "taint-eviction-controller",
    kind = { "", "v1", "Pod" },
    maps = { nodes = pods_at(server) },
    ignores = function()
      return not any_evicts(server)
    end,
    reconcile = function(api, pod)
      return reconcile(server, due, api, pod)
    end,
    gone = function(_, namespace, name)
      due[namespace .. "/" .. name] = nil
    end,
  })
end


return M
