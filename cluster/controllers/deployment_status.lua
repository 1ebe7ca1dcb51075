--- The status of a Deployment: counts, and the conditions Available and Progressing.
---
--- Rules: kubernetes/pkg/controller/deployment/{sync,progress}.go.
local host = require "cluster.host"
local rolling = require "cluster.controllers.rolling"
local instant = require "cluster.apiserver.instant"

local M = {}

local COUNTS = { "replicas", "readyReplicas", "availableReplicas", "terminatingReplicas" }


local function find(conditions, type)
  for i, condition in ipairs(conditions) do
    if condition.type == type then
      return condition, i
    end
  end
end


-- A condition that says the same stays as it was; one with the same truth keeps the time of its change.
local function set_condition(status, type, truth, reason, message)
  status.conditions = status.conditions or host.json.array {}
  local now = host.timestamp()
  local known, at = find(status.conditions, type)
  if known and known.status == truth and known.reason == reason and known.message == message then
    return
  end
  if at then
    table.remove(status.conditions, at)
  end
  table.insert(status.conditions, { -- the one that changed comes last
    type = type,
    status = truth,
    reason = reason,
    message = message,
    lastUpdateTime = now,
    lastTransitionTime = known and known.status == truth and known.lastTransitionTime or now,
  })
end


--- Notes progress of its own kind ("NewReplicaSetCreated") in the deployment that is at hand.
function M.note(deployment, reason, message)
  set_condition(deployment.status, "Progressing", "True", reason, message)
end


local function count(deployment, newest, old)
  local sets, status = { table.unpack(old) }, deployment.status
  sets[#sets + 1] = newest
  local totals = {}
  for _, name in ipairs(COUNTS) do
    local total = 0
    for _, set in ipairs(sets) do
      total = total + ((set.status or {})[name] or 0)
    end
    totals[name] = total
    status[name] = (total > 0 or name == "terminatingReplicas") and total or nil
  end
  local updated = newest and (newest.status or {}).replicas or 0
  local missing = 0
  for _, set in ipairs(sets) do
    missing = missing + set.spec.replicas
  end
  missing = missing - totals.availableReplicas
  status.updatedReplicas = updated > 0 and updated or nil
  status.unavailableReplicas = missing > 0 and missing or nil
  status.observedGeneration = deployment.metadata.generation
  return totals, updated
end


local function judge_availability(deployment, available)
  local enough = available >= deployment.spec.replicas - rolling.limits(deployment).unavailable
  if enough then
    set_condition(deployment.status, "Available", "True", "MinimumReplicasAvailable",
      "Deployment has minimum availability.")
  else
    set_condition(deployment.status, "Available", "False", "MinimumReplicasUnavailable",
      "Deployment does not have minimum availability.")
  end
end


local function has_progressed(before, status)
  local function old(name)
    return before[name] or 0
  end
  local function new(name)
    return status[name] or 0
  end
  return new "updatedReplicas" > old "updatedReplicas" or new "readyReplicas" > old "readyReplicas"
    or new "availableReplicas" > old "availableReplicas"
    or new "replicas" - new "updatedReplicas" < old "replicas" - old "updatedReplicas"
end


-- True if the roll-out takes longer than it may. The second result is the number of seconds until then, or nil.
local function is_late(deployment)
  local progressing = find(deployment.status.conditions or {}, "Progressing")
  if not progressing or progressing.reason == "NewReplicaSetAvailable" then
    return false
  elseif progressing.reason == "ProgressDeadlineExceeded" then
    return true
  end
  local seconds_left = instant.read(progressing.lastUpdateTime) + (deployment.spec.progressDeadlineSeconds or 600)
    - host.now()
  return seconds_left <= 0, seconds_left
end


local function judge_progress(deployment, before, newest, is_complete)
  local what = newest and ("ReplicaSet %q"):format(newest.metadata.name)
    or ("Deployment %q"):format(deployment.metadata.name)
  local late, seconds_left = is_late(deployment)
  if is_complete then
    set_condition(deployment.status, "Progressing", "True", "NewReplicaSetAvailable",
      what .. " has successfully progressed.")
  elseif has_progressed(before, deployment.status) then
    local progressing, at = find(deployment.status.conditions or {}, "Progressing")
    if progressing and progressing.reason == "ReplicaSetUpdated" then
      table.remove(deployment.status.conditions, at) -- its lastUpdateTime is when there was progress
    end
    set_condition(deployment.status, "Progressing", "True", "ReplicaSetUpdated", what .. " is progressing.")
    local renewed = find(deployment.status.conditions, "Progressing")
    renewed.lastTransitionTime = progressing and progressing.status == "True" and progressing.lastTransitionTime
      or renewed.lastTransitionTime
    return deployment.spec.progressDeadlineSeconds
  elseif late then
    set_condition(deployment.status, "Progressing", "False", "ProgressDeadlineExceeded",
      what .. " has timed out progressing.")
  else
    return seconds_left
  end
end


--- Notes that a deployment was paused, or goes on, unless it had been late before.
--- Rules: kubernetes/pkg/controller/deployment/sync.go (checkPausedConditions).
function M.note_pause(deployment)
  local status, paused = deployment.status, deployment.spec.paused == true
  local progressing = find(status.conditions or {}, "Progressing")
  local reason = progressing and progressing.reason
  if reason == "ProgressDeadlineExceeded" or paused == (reason == "DeploymentPaused") then
    return
  elseif paused then
    set_condition(status, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
  else
    set_condition(status, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed")
  end
end


--- Writes the status that follows from the sets.
--- @param before table the status as it was read
--- @return number|nil seconds after which to look again  @return boolean whether the roll-out is complete
function M.write(api, deployment, before, newest, old)
  local wanted = deployment.spec.replicas
  local totals, updated = count(deployment, newest, old)
  local is_complete = updated == wanted and totals.replicas == wanted and totals.availableReplicas == wanted
  judge_availability(deployment, totals.availableReplicas)
  local again
  if not deployment.spec.paused then
    again = judge_progress(deployment, before, newest, is_complete)
  end
  local status = deployment.status
  deployment.status = before
  api.write_status(deployment, status)
  return again, is_complete
end


return M
