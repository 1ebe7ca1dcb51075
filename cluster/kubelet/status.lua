--- Computes the status of a pod from its containers.
---
--- A *container record*, which the pod's worker keeps for each container:
---   spec       the container of pod.spec
---   is_sidecar an init container with restartPolicy Always
---   state      { waiting = { reason =, message = } } | { running = { startedAt = } }
---              | { terminated = { exitCode =, signal =, reason =, message =, startedAt =, finishedAt = } }
---   last       the state before a restart, or nil
---   restarts   the number of restarts
---   ready      whether its readiness probe has succeeded; without a probe: whether it runs
---   started    whether its startup probe has succeeded
---   id         names the run: "moonloop://UID/NAME/ATTEMPT", or nil
--- Rules: kubernetes/pkg/kubelet/kubelet_pods.go (getPhase), status/generate.go, status/status_manager.go
--- (mergePodStatus, TerminatePod), pkg/api/v1/pod/util.go (CalculatePodConditionObservedGeneration).
local host = require "cluster.host"
local records = require "cluster.kubelet.record"

local M = {}

local function is_sidecar(record)
  return record.is_sidecar
end


local function is_running(record)
  return record.state.running ~= nil
end


local function has_succeeded(record)
  return records.is_over(record) and not records.has_failed(record)
end


-- Waits to be started for the first time, not to be started again.
local function is_fresh(record)
  return record.state.waiting ~= nil and record.last == nil
end


local function any(list, predicate)
  for _, record in ipairs(list) do
    if predicate(record) then
      return true
    end
  end
  return false
end


local function all(list, predicate)
  for _, record in ipairs(list) do
    if not predicate(record) then
      return false
    end
  end
  return true
end


local function those(list, predicate, wanted)
  local chosen = {}
  for _, record in ipairs(list) do
    if predicate(record) == wanted then
      chosen[#chosen + 1] = record
    end
  end
  return chosen
end


-- True once a container has started; sidecars that start again later do not change that.
local function has_begun(containers)
  return not all(containers, is_fresh)
end


-- True if something waits for its first start.
local function is_pending(init, containers)
  local steps, sidecars = those(init, is_sidecar, false), those(init, is_sidecar, true)
  return not all(steps, records.is_complete) or not (has_begun(containers) or all(sidecars, records.is_complete))
    or any(sidecars, is_fresh) or any(containers, is_fresh)
end


--- "Pending", "Running", "Succeeded" or "Failed". @param policy string the pod's restartPolicy
function M.phase(policy, init, containers)
  local function goes_on(record)
    return not records.is_over(record) or records.may_restart(record, policy)
  end
  local function has_failed(record)
    return records.has_failed(record) and not goes_on(record)
  end
  if any(those(init, is_sidecar, false), has_failed) then
    return "Failed"
  elseif is_pending(init, containers) then
    return "Pending"
  elseif any(init, is_running) or any(containers, goes_on) then
    return "Running"
  end
  return all(containers, has_succeeded) and "Succeeded" or "Failed"
end


-- Adds the names of those that do not satisfy the predicate.
local function add_names(names, list, predicate)
  for _, record in ipairs(list) do
    if not predicate(record) then
      names[#names + 1] = record.spec.name
    end
  end
  return names
end


local function is_ready(record)
  return record.ready
end


-- Which of the pod's readiness gates are closed: others open them, with conditions of the pod. nil: none.
local function closed_gates(pod)
  local found, closed = {}, {}
  for _, condition in ipairs((pod.status or {}).conditions or {}) do
    found[condition.type] = condition.status
  end
  for _, gate in ipairs(pod.spec.readinessGates or {}) do
    local is = found[gate.conditionType]
    if not is then
      closed[#closed + 1] = ('corresponding condition of pod readiness gate "%s" does not exist.'):format(
        gate.conditionType)
    elseif is ~= "True" then
      closed[#closed + 1] = ('the status of pod readiness gate "%s" is not "True", but %s'):format(
        gate.conditionType, is)
    end
  end
  return closed[1] and table.concat(closed, ", ")
end


-- Two words a condition: its truth, and why not.
local function judge(pod, phase, init, containers)
  local unready = table.concat(add_names(add_names({}, those(init, is_sidecar, true), is_ready), containers, is_ready),
    " ")
  local incomplete = has_begun(containers) and "" or table.concat(add_names({}, init, records.is_complete), " ")
  local ready
  if phase == "Succeeded" then
    ready = { reason = "PodCompleted" }
  elseif phase == "Failed" then
    ready = { reason = "PodFailed" }
  elseif unready ~= "" then
    ready = { reason = "ContainersNotReady", message = ("containers with unready status: [%s]"):format(unready) }
  else
    ready = { holds = true }
  end
  local gates = ready.holds and closed_gates(pod)
  local initialized = { holds = true, reason = phase == "Succeeded" and "PodCompleted" or nil }
  if incomplete ~= "" then
    initialized = {
      reason = "ContainersNotInitialized",
      message = ("containers with incomplete status: [%s]"):format(incomplete),
    }
  end
  return {
    PodReadyToStartContainers = {
      holds = phase == "Pending" or phase == "Running" or any(init, is_running) or any(containers, is_running),
    },
    Initialized = initialized,
    Ready = gates and { reason = "ReadinessGatesNotReady", message = gates } or ready,
    ContainersReady = ready,
    PodScheduled = { holds = true },
  }
end

local CONDITIONS = { "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled" }

-- Keeps conditions of other writers, in front. The time of a condition is that of its last change.
local function conditions(computed, before, generation, now)
  local times, list = {}, host.json.array {}
  for _, condition in ipairs(before or {}) do
    times[condition.type .. condition.status] = condition.lastTransitionTime
    list[#list + 1] = not computed[condition.type] and condition or nil
  end
  for _, type in ipairs(CONDITIONS) do
    local status = computed[type].holds and "True" or "False"
    list[#list + 1] = {
      type = type,
      observedGeneration = generation,
      status = status,
      reason = computed[type].reason,
      message = computed[type].message,
      lastProbeTime = host.json.null,
      lastTransitionTime = times[type .. status] or now,
    }
  end
  return list
end


-- The state of a container that waits when its pod ends.
local LOST = { terminated = {
  exitCode = 137,
  reason = "ContainerStatusUnknown",
  message = "The container could not be located when the pod was terminated",
} }


-- How many containers of each list have had their turn, so that they do not wait in a pod that has ended.
local function turns(init, containers)
  local last = 1
  for i, record in ipairs(init) do
    last = is_fresh(record) and last or i
  end
  local is_initialized = #init == 0 or has_begun(containers) or records.is_complete(init[#init])
  return last, is_initialized and #containers or 0
end


local function container_status(record, state)
  return {
    name = record.spec.name,
    image = record.spec.image,
    imageID = "",
    containerID = record.id,
    state = state,
    lastState = record.last or {},
    restartCount = record.restarts,
    ready = record.ready,
    started = record.started,
  }
end


-- @param ended integer so many of them do not wait any more
local function container_statuses(list, ended)
  local statuses = host.json.array {}
  for i, record in ipairs(list) do
    statuses[i] = container_status(record, i <= ended and record.state.waiting and LOST or record.state)
  end
  return statuses
end


-- The phase as it will be in the end, if the end is known. A pod that is deleted has succeeded or failed.
local function last_phase(pod, phase, containers, failure)
  if failure then
    return "Failed"
  elseif pod.metadata.deletionTimestamp then
    return all(containers, has_succeeded) and "Succeeded" or "Failed"
  end
  return phase
end


--- The whole status. The phase is that of the end once nothing of the pod runs any more.
--- @param pod table as stored; fields of its status that are no business of the kubelet are kept
--- @param init table list of container records  @param containers table list of container records
--- @param failure table|nil { reason =, message = }: why the kubelet ends the pod
--- @param now string timestamp
--- @return table status
function M.of(pod, init, containers, failure, now)
  local status, generation = host.json.copy(pod.status or {}), pod.metadata.generation
  local is_over = not (any(init, is_running) or any(containers, is_running))
  local phase = M.phase(pod.spec.restartPolicy, init, containers)
  local last = last_phase(pod, phase, containers, failure)
  status.phase = is_over and last or phase
  status.observedGeneration = generation
  status.conditions = conditions(judge(pod, failure and last or status.phase, init, containers), status.conditions,
    generation, now)
  if failure and is_over then
    status.reason, status.message = failure.reason, failure.message
  end
  local init_ended, ended = 0, 0
  if is_over and (failure or pod.metadata.deletionTimestamp) then
    init_ended, ended = turns(init, containers)
  end
  status.containerStatuses = container_statuses(containers, ended)
  status.initContainerStatuses = #init > 0 and container_statuses(init, init_ended) or nil
  return status
end


return M
