--- The pauses after failures of a Job's pods: 10 s after the first, doubling up to 10 minutes; a success ends them.
---
--- Rules: kubernetes/pkg/controller/job/backoff_utils.go.
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"

local M = {}

local PAUSE_FIRST, PAUSE_MAX = 10, 600


-- When the last container ended, or nil when one of them has not.
local function containers_ended_at(pod)
  local latest
  for _, container in ipairs((pod.status or {}).containerStatuses or {}) do
    local over = container.state and container.state.terminated
    if not (over and over.finishedAt) then
      return nil
    end
    latest = math.max(latest or 0, (instant.read(over.finishedAt)))
  end
  return latest
end


-- When a pod was over, as well as that can be told.
local function ended_at(pod)
  local meta, at = pod.metadata, containers_ended_at(pod)
  for _, condition in ipairs((pod.status or {}).conditions or {}) do
    if not at and condition.type == "Ready" and condition.status == "False" and condition.lastTransitionTime then
      at = instant.read(condition.lastTransitionTime)
    end
  end
  if not at and meta.deletionTimestamp then
    at = instant.read(meta.deletionTimestamp) - (meta.deletionGracePeriodSeconds or 0)
  end
  return at or (instant.read(meta.creationTimestamp))
end


--- The record of failures in a row, with what has ended since.
--- @param record table|nil { failures =, latest = } as it was  @param succeeded table pods  @param failed table pods
function M.after(record, succeeded, failed)
  record = record or { failures = 0 }
  if #succeeded == 0 and #failed == 0 then
    return record
  end
  local since, new = -1, { failures = #succeeded == 0 and record.failures or 0 }
  for _, pod in ipairs(succeeded) do
    since = math.max(since, ended_at(pod))
  end
  for _, pod in ipairs(failed) do
    local at = ended_at(pod)
    if at > since then
      new.failures = new.failures + 1
      new.latest = math.max(new.latest or 0, at)
    end
  end
  return new
end


--- Seconds until another pod may be made after so many failures, the latest of them at that time.
function M.seconds_left(failures, latest)
  if failures == 0 then
    return 0
  end
  return math.max(0, latest + math.min(PAUSE_FIRST * 2 ^ (failures - 1), PAUSE_MAX) - host.now())
end


--- The same for what is to follow one failed pod, whose index failed `failures` times before.
function M.seconds_left_after(pod, failures)
  return M.seconds_left(failures + 1, ended_at(pod))
end


--- Returns true if `a` ended before `b`.
function M.is_earlier(a, b)
  return ended_at(a) < ended_at(b)
end


return M
