--- The status of a Job: counts and conditions.
---
--- Rules: kubernetes/pkg/controller/job/job_controller.go (updateStatus, newCondition).
local host = require "moonloop.host"

local M = {}


local function find(job, type)
  for _, condition in ipairs((job.status or {}).conditions or {}) do
    if condition.type == type then
      return condition
    end
  end
end


-- Adds a condition, or changes the truth of one that is there.
local function set(job, type, truth, reason, message)
  local now = host.timestamp()
  local status = job.status
  status.conditions = status.conditions or host.json.array {}
  local condition = find(job, type)
  if not condition then
    condition = { type = type }
    table.insert(status.conditions, condition)
  elseif condition.status == truth then
    return
  end
  condition.status, condition.reason, condition.message = truth, reason, message
  condition.lastProbeTime, condition.lastTransitionTime = now, now
end


-- A copy of the status that may be changed, once a reconcile; M.write compares with what it was.
local function begin(job)
  if not job.before then
    job.before = job.status or {}
    job.status = host.json.copy(job.before)
  end
end


--- When the job ended, by its conditions, or nil.
function M.finished_at(job)
  for _, type in ipairs { "Complete", "Failed" } do
    local condition = find(job, type)
    if condition and condition.status == "True" then
      return condition.lastTransitionTime
    end
  end
end


--- The job has what it was made for.
function M.complete(api, job)
  local reason, message = "CompletionsReached", "Reached expected number of succeeded pods"
  begin(job)
  set(job, "SuccessCriteriaMet", "True", reason, message)
  set(job, "Complete", "True", reason, message)
  job.status.completionTime = host.timestamp()
  api.event(job, "Normal", "Completed", "Job completed")
end


--- The job ends without.
function M.fail(api, job, reason, message)
  begin(job)
  set(job, "FailureTarget", "True", reason, message)
  set(job, "Failed", "True", reason, message)
  api.event(job, "Warning", reason, message)
end


local function suspend(api, job)
  local suspended = find(job, "Suspended")
  if job.spec.suspend and not (suspended and suspended.status == "True") then
    set(job, "Suspended", "True", "JobSuspended", "Job suspended")
    api.event(job, "Normal", "Suspended", "Job suspended")
  elseif not job.spec.suspend and suspended and suspended.status == "True" then
    set(job, "Suspended", "False", "JobResumed", "Job resumed")
    job.status.startTime = host.timestamp()
    api.event(job, "Normal", "Resumed", "Job resumed")
  end
end


-- "0-2,5" of the indexes that are done.
local function completed_indexes(job, indexes)
  local runs, from, last = {}, nil, job.spec.completions
  for index = 0, last do
    local is_done = index < last and indexes[index]
    if is_done and not from then
      from = index
    elseif not is_done and from then
      runs[#runs + 1] = from == index - 1 and tostring(from) or ("%d%s%d"):format(from,
        from == index - 2 and "," or "-", index - 1)
      from = nil
    end
  end
  return #runs > 0 and table.concat(runs, ",") or nil
end


--- Writes what the pods came to.
--- @param found table as job.lua counts them  @param succeeded integer
function M.write(api, job, found, succeeded)
  begin(job)
  local status = job.status
  local function some(count)
    return count > 0 and count or nil
  end
  suspend(api, job)
  if not status.startTime and not job.spec.suspend then
    status.startTime = host.timestamp()
  end
  if job.spec.suspend then
    status.startTime = nil
  end
  status.active = some(#found.active)
  status.ready = found.ready
  status.terminating = found.terminating
  status.succeeded = some(succeeded)
  status.failed = some(#found.failed)
  status.uncountedTerminatedPods = {}
  if job.spec.completionMode == "Indexed" then
    status.completedIndexes = completed_indexes(job, found.indexes)
  end
  job.status, job.before = job.before, nil
  api.write_status(job, status)
end


return M
