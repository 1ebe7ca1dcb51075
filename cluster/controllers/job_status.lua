--- The status of a Job: conditions, when it began and ended.
---
--- Rules: kubernetes/pkg/controller/job/job_controller.go (syncJob, newCondition, enactJobFinished).
local host = require "cluster.host"

local M = {}

-- Condition that is set while pods are still being deleted → condition that is set when they are gone.
local LAST = { SuccessCriteriaMet = "Complete", FailureTarget = "Failed" }


--- The condition of a type if it is true, or nil.
function M.truth(status, type)
  for _, condition in ipairs(status.conditions or {}) do
    if condition.type == type and condition.status == "True" then
      return condition
    end
  end
end


--- When the job ended, by its conditions, or nil.
function M.finished_at(status)
  local condition = M.truth(status, "Complete") or M.truth(status, "Failed")
  return condition and condition.lastTransitionTime
end


-- Sets a condition; a new one is only added if it is not "False". @return boolean whether it changed
local function set(status, type, truth, reason, message)
  status.conditions = status.conditions or host.json.array {}
  local at = #status.conditions + 1
  for i, condition in ipairs(status.conditions) do
    if condition.type == type then
      at = i
    end
  end
  local known = status.conditions[at]
  if not known and truth == "False"
    or known and known.status == truth and known.reason == reason and known.message == message then
    return false
  end
  local now = host.timestamp()
  status.conditions[at] = {
    type = type, status = truth, reason = reason, message = message, lastProbeTime = now, lastTransitionTime = now,
  }
  return true
end


--- The job begins, unless it is suspended or has begun.
function M.begin(job, status)
  if not status.startTime and not job.spec.suspend then
    status.startTime = host.timestamp()
  end
end


--- Says whether the job is suspended. The time of its deadline begins anew when it is resumed.
function M.suspend(api, job, status)
  if job.spec.suspend then
    if set(status, "Suspended", "True", "JobSuspended", "Job suspended") then
      status.startTime = nil
      api.event(job, "Normal", "Suspended", "Job suspended")
    end
  elseif set(status, "Suspended", "False", "JobResumed", "Job resumed") then
    status.startTime = host.timestamp()
    api.event(job, "Normal", "Resumed", "Job resumed")
  end
end


--- Says that the job ends, and that it has ended once no pod is about to go any more.
--- @param ending table { type = "SuccessCriteriaMet"|"FailureTarget", reason =, message = }
--- @return boolean whether it has ended
function M.finish(status, ending, terminating)
  set(status, ending.type, "True", ending.reason, ending.message)
  if terminating > 0 then
    return false
  end
  set(status, LAST[ending.type], "True", ending.reason, ending.message)
  if ending.type == "SuccessCriteriaMet" then
    status.completionTime = host.timestamp()
  end
  return true
end


--- Tells of the end of a job.
function M.announce(api, job, ending)
  if ending.type == "SuccessCriteriaMet" then
    api.event(job, "Normal", "Completed", "Job completed")
  else
    api.event(job, "Warning", ending.reason, ending.message)
  end
end


return M
