--- The record of one container, from which status.lua makes pod.status, and the rules for its restarts.
---
--- Rules: kubernetes/pkg/kubelet/container (ShouldContainerBeRestarted), kuberuntime (computeInitContainerActions).
local host = require "cluster.host"
local restarts = require "cluster.restarts"

local M = {}

-- Pauses before a container is started again: none at first, then 10 s doubling up to 5 minutes, forgotten after a
-- run of 10 minutes (kubernetes/pkg/kubelet/kubelet.go: MaxContainerBackOff, backOffPeriod).
local PAUSE_FIRST, PAUSE_MAX, PAUSE_FORGET = 10, 300, 600

--- Seconds until what could not be started is tried again.
M.TRY_AGAIN = PAUSE_FIRST


--- Records of a pod's containers, in their order.
--- @param containers table|nil  @param is_init boolean  @param reason string why they do not run yet
function M.list(containers, is_init, reason)
  local records = {}
  for i, container in ipairs(containers or {}) do
    records[i] = {
      spec = container,
      is_init = is_init,
      is_sidecar = is_init and container.restartPolicy == "Always",
      state = { waiting = { reason = reason } },
      restarts = 0,
      ready = false,
      started = false,
    }
  end
  return records
end


--- Neither runs nor waits for a start of its own.
function M.is_idle(record)
  return record.handle == nil and record.timer == nil
end


function M.is_over(record)
  return record.state.terminated ~= nil
end


function M.has_failed(record)
  return M.is_over(record) and record.state.terminated.exitCode ~= 0
end


--- Of an init container: may the next one start? A sidecar is not waited for to end.
function M.is_complete(record)
  if record.is_sidecar then
    return record.started
  end
  return M.is_over(record) and not M.has_failed(record)
end


--- Returns true if a container that has ended starts again. @param policy string the pod's restartPolicy
function M.may_restart(record, policy)
  local code = record.state.terminated.exitCode
  if record.is_init and not record.is_sidecar and code == 0 then
    return false
  end
  return restarts.follows(record.spec, policy, code)
end


--- Seconds until it starts again, after a run of `ran` seconds.
function M.pause(record, ran)
  if record.restarts == 0 or ran > PAUSE_FORGET then
    record.pause = nil
    return 0
  end
  record.pause = math.min((record.pause or PAUSE_FIRST / 2) * 2, PAUSE_MAX)
  return record.pause
end


--- The run is over. @param exit table see pod_worker.lua
function M.ended(record, exit)
  record.handle = nil
  record.started = false
  record.ready = record.is_init and not record.is_sidecar and exit.code == 0
  record.state = {
    terminated = {
      exitCode = exit.code,
      signal = exit.signal,
      reason = exit.reason or (exit.code == 0 and "Completed" or "Error"),
      message = exit.message,
      startedAt = record.state.running.startedAt,
      finishedAt = host.timestamp(),
      containerID = record.id,
    },
  }
end


return M
