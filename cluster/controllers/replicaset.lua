--- ReplicaSets and ReplicationControllers: keep the requested number of pods.
---
--- Rules: kubernetes/pkg/controller/replicaset, pkg/controller/replication.
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local pods = require "cluster.controllers.pods"
local selectors = require "cluster.apiserver.resources.selectors"

local M = {}

local FAILURE = "ReplicaFailure"


-- Makes pods that are missing, or deletes those that are too many. Each change of a pod brings the next look, which
-- goes on.
local function scale(api, set, active)
  local missing = set.spec.replicas - #active
  for _ = 1, math.min(missing, pods.BURST_MAX) do
    local pod = pods.from_template(set.spec.template)
    pod.metadata.generateName = set.metadata.name .. "-"
    pods.create(api, pod, set)
  end
  if missing < 0 then
    pods.sort_by_departure(active)
    for i = 1, math.min(-missing, pods.BURST_MAX) do
      api.delete(active[i])
      api.event(set, "Normal", "SuccessfulDelete", "Deleted pod: " .. active[i].metadata.name)
    end
  end
end


local function has_labels(pod, labels)
  for key, value in pairs(labels or {}) do
    if (pod.metadata.labels or {})[key] ~= value then
      return false
    end
  end
  return true
end


-- The conditions when `scale` has failed with that message, or (nil) has not: the first failure is told until one goes
-- well.
local function conditions_after(set, failure)
  local known = set.status and set.status.conditions or {}
  local new_conditions = host.json.array {}
  local has_condition = false
  for _, condition in ipairs(known) do
    if condition.type ~= FAILURE or failure then
      new_conditions[#new_conditions + 1] = condition
    end
    has_condition = has_condition or condition.type == FAILURE
  end
  if failure and not has_condition then
    new_conditions[#new_conditions + 1] = {
      type = FAILURE, status = "True", reason = "FailedCreate", message = failure,
      lastTransitionTime = host.timestamp(),
    }
  end
  return #new_conditions > 0 and new_conditions or nil
end


-- The status as the pods are; the second result says when to look again.
local function count(set, active, terminating, failure)
  local status = {
    replicas = #active,
    terminatingReplicas = set.kind == "ReplicaSet" and terminating or nil,
    observedGeneration = set.metadata.generation,
  }
  local labelled, ready, available, again = 0, 0, 0, nil
  for _, pod in ipairs(active) do
    host.give_way()
    local is_available, seconds_left = pods.is_available(pod, set.spec.minReadySeconds)
    labelled = labelled + (has_labels(pod, (set.spec.template.metadata or {}).labels) and 1 or 0)
    ready = ready + (pods.is_ready(pod) and 1 or 0)
    available = available + (is_available and 1 or 0)
    if seconds_left and seconds_left > 0 then
      again = math.min(seconds_left, again or seconds_left)
    end
  end
  status.fullyLabeledReplicas = labelled > 0 and labelled or nil
  status.readyReplicas = ready > 0 and ready or nil
  status.availableReplicas = available > 0 and available or nil
  status.conditions = conditions_after(set, failure)
  return status, again
end


-- The set with its selector in the form that `owned` reads.
local function selecting(set)
  if set.kind == "ReplicaSet" then
    return set
  end
  local spec = setmetatable({ selector = selectors.of(set) }, { __index = set.spec })
  return setmetatable({ spec = spec }, { __index = set })
end


local function reconcile(api, set)
  local active, terminating = {}, 0
  for _, pod in ipairs(api.owned(selecting(set), "", "v1", "pods")) do
    if pods.is_active(pod) then
      active[#active + 1] = pod
    elseif pods.is_terminating(pod) then
      terminating = terminating + 1
    end
  end
  local done, failure = true, nil
  if not set.metadata.deletionTimestamp then
    done, failure = pcall(scale, api, set, active)
  end
  local status, again = count(set, active, terminating, not done and tostring(failure) or nil)
  api.write_status(set, status)
  if not done then
    error(failure, 0)
  end
  return again
end


--- Starts the controllers.
function M.start(server)
  controller.start(server, {
    name = "replicaset-controller", kind = { "apps", "v1", "ReplicaSet" }, owns = { "pods" }, reconcile = reconcile,
  })
  controller.start(server, {
    name = "replication-controller", kind = { "", "v1", "ReplicationController" }, owns = { "pods" },
    reconcile = reconcile,
  })
end


return M
