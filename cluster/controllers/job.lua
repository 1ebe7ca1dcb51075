--- Jobs: pods until enough of them have succeeded, or too many have failed.
---
--- Rules: kubernetes/pkg/controller/job/job_controller.go. Two differences. Upstream writes in two steps that the job
--- is about to end, and that it has ended; here this is one write when no pod is left. And upstream keeps counted pods
--- in status.uncountedTerminatedPods until their finalizer is removed; here they are a set in memory.
local backoff = require "cluster.controllers.job_backoff"
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local indexes = require "cluster.controllers.job_indexes"
local instant = require "cluster.apiserver.instant"
local job_pods = require "cluster.controllers.job_pods"
local job_status = require "cluster.controllers.job_status"
local pods = require "cluster.controllers.pods"
local policies = require "cluster.controllers.job_policies"
local tracking = require "cluster.controllers.job_tracking"
local ttlafterfinished = require "cluster.controllers.ttlafterfinished"

local M = {}

local NAME = "kubernetes.io/job-controller"
local COMPLETE = {
  type = "SuccessCriteriaMet", reason = "CompletionsReached", message = "Reached expected number of succeeded pods",
}


local function failure(reason, message)
  return { type = "FailureTarget", reason = reason, message = message }
end


-- How often containers of pods that have not ended were started again.
local function restarts(found)
  local count = 0
  for _, pod in ipairs(found.all) do
    local status = pod.status or {}
    for _, name in ipairs { "initContainerStatuses", "containerStatuses" } do
      for _, container in ipairs(status.phase ~= "Succeeded" and status.phase ~= "Failed" and status[name] or {}) do
        count = count + container.restartCount
      end
    end
  end
  return count
end


local function is_beyond_limit(job, found)
  local limit = job.spec.backoffLimit
  if found.failed > limit then
    return true
  end
  return job.spec.template.spec.restartPolicy == "OnFailure" and restarts(found) >= math.max(limit, 1)
end


-- Seconds that are left of activeDeadlineSeconds, or nil.
local function deadline_left(job, status)
  local seconds, since = job.spec.activeDeadlineSeconds, status.startTime
  return seconds and since and not job.spec.suspend and math.max(0, instant.read(since) + seconds - host.now()) or nil
end


local function failure_by_policy(job, found)
  for _, pod in ipairs(job.spec.podFailurePolicy and found.all or {}) do
    local action, message = policies.on_failure(job, pod)
    if action == "FailJob" and job_pods.is_failed(job, pod) then
      return failure("PodFailurePolicy", message)
    end
  end
end


local function failure_of_indexes(job, found)
  local lost = indexes.count(found.lost)
  if job.spec.maxFailedIndexes and lost > job.spec.maxFailedIndexes then
    return failure("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
  elseif lost > 0 and lost + found.succeeded >= job.spec.completions then
    return failure("FailedIndexes", "Job has failed indexes")
  end
end


-- Returns why the job ends before it has all its completions, or nil. An earlier decision stays.
local function ending_of(job, status, found)
  local decided = job_status.truth(status, "SuccessCriteriaMet") or job_status.truth(status, "FailureTarget")
  if decided then
    return decided
  end
  local ending = failure_by_policy(job, found)
  if not ending and is_beyond_limit(job, found) then
    ending = failure("BackoffLimitExceeded", "Job has reached the specified backoff limit")
  elseif not ending and deadline_left(job, status) == 0 then
    ending = failure("DeadlineExceeded", "Job was active longer than specified deadline")
  end
  ending = ending or found.lost and failure_of_indexes(job, found)
  local early = not ending and found.done and policies.success(job, found.done)
  return early and { type = "SuccessCriteriaMet", reason = "SuccessPolicy", message = early } or ending or nil
end


-- How many pods should be active.
local function wanted(job, found)
  local spec = job.spec
  if spec.suspend then
    return 0
  elseif spec.completions then
    return math.max(0, math.min(spec.parallelism, spec.completions - found.succeeded))
  end
  return found.succeeded > 0 and #found.active or spec.parallelism
end


-- Makes or deletes pods. @return number|nil seconds after which to look again
local function manage(api, job, found, record)
  local want = wanted(job, found)
  local go, stay = job_pods.surplus(job, found.active,
    math.max(0, math.min(#found.active - want, pods.BURST_MAX)))
  if #go > 0 then
    for _, pod in ipairs(go) do
      tracking.release(api, pod) -- a surplus pod does not count as failed
    end
    job_pods.delete(api, job, found, go)
    found.active = stay
    return
  end
  local missing = want - #stay - (job_pods.waits_for_failed(job) and found.terminating or 0)
  if missing <= 0 then
    return
  end
  local seconds_left = job.spec.backoffLimitPerIndex and 0 or backoff.seconds_left(record.failures, record.latest)
  if seconds_left > 0 then
    return seconds_left
  end
  local made, again = job_pods.create(api, job, found, missing)
  table.move(made, 1, #made, #found.active + 1, found.active)
  return again
end


local function is_complete(job, found)
  return #found.active == 0 and found.succeeded >= (job.spec.completions or 1)
end


local function some(count)
  return count and count > 0 and count or nil
end


-- Adds what is over to the counts of the status. @return table the pods that may go
local function count(job, status, found, ending, counted_pods)
  local over, failed, succeeded, has_heir = {}, 0, 0, {}
  for _, pod in pairs(found.predecessors) do
    has_heir[pod] = false -- it stays until there is one that has its count
  end
  for _, pod in ipairs(found.all) do
    local phase, is_failed = pod.status and pod.status.phase, job_pods.is_failed(job, pod)
    if tracking.is_tracked(pod) and (job.metadata.deletionTimestamp or ending or phase == "Succeeded"
      or is_failed and has_heir[pod] ~= false) then
      over[#over + 1] = pod
      local is_new = not counted_pods[pod.metadata.uid] and job_pods.is_counted(job, pod)
      if is_new and phase == "Succeeded" then
        succeeded = succeeded + 1
      elseif is_new and (is_failed or ending and ending.type == "FailureTarget") and policies.counts(job, pod) then
        failed = failed + 1
      end
    end
  end
  status.succeeded = some(job_pods.is_indexed(job) and found.succeeded or (status.succeeded or 0) + succeeded)
  status.failed = some((status.failed or 0) + failed)
  return over
end


local function describe(job, status, found)
  status.active, status.ready, status.terminating = some(#found.active), found.ready, found.terminating
  status.uncountedTerminatedPods = {}
  if job_pods.is_indexed(job) then
    local done = indexes.write(found.done, job.spec.completions)
    status.completedIndexes = done ~= "" and done or nil
    status.failedIndexes = found.lost and indexes.write(found.lost, job.spec.completions)
  end
end


-- @param memory table { records = backoff by uid of the job, counted = set of uids of pods }
local function reconcile(api, job, memory)
  local uid, before = job.metadata.uid, job.status or {}
  if job_status.finished_at(before) then
    memory.records[uid] = nil
    return
  elseif job.spec.managedBy and job.spec.managedBy ~= NAME then
    return
  end
  local status = host.json.copy(before)
  job_status.begin(job, status)
  local found = job_pods.find(api, job, status, memory.counted_pods)
  local record = backoff.after(memory.records[uid], found.new_succeeded, found.new_failed)
  local ending, again = ending_of(job, status, found), nil
  if ending then
    job_pods.delete(api, job, found, found.active)
    found.active = {}
  elseif not job.metadata.deletionTimestamp then
    again = manage(api, job, found, record)
  end
  if not ending and is_complete(job, found) then
    ending = COMPLETE
  elseif not ending and not job.metadata.deletionTimestamp then
    job_status.suspend(api, job, status)
  end
  local over = count(job, status, found, ending, memory.counted_pods)
  describe(job, status, found)
  local has_ended = ending and job_status.finish(status, ending, found.terminating)
  api.write_status(job, status)
  memory.records[uid] = record
  for _, pod in ipairs(over) do
    memory.counted_pods[pod.metadata.uid] = true
  end
  for _, pod in ipairs(over) do
    tracking.release(api, pod)
    memory.counted_pods[pod.metadata.uid] = nil
  end
  if has_ended then
    job_status.announce(api, job, ending)
  end
  local seconds_left = not ending and deadline_left(job, status)
  return again and seconds_left and math.min(again, seconds_left) or again or seconds_left or nil
end


--- Starts the controller, with those of what it leaves behind.
function M.start(server)
  local memory = { records = {}, counted_pods = {} }
  controller.start(server, {
    name = "job-controller",
    kind = { "batch", "v1", "Job" },
    owns = { "pods" },
    reconcile = function(api, job)
      return reconcile(api, job, memory)
    end,
  })
  server.store:subscribe(function(event)
    if event.type == "DELETED" and event.id == "jobs.batch" then
      memory.records[event.entry.uid] = nil
    elseif event.type == "DELETED" and event.id == "pods" then
      memory.counted_pods[event.entry.uid] = nil
    end
  end, { ["jobs.batch"] = true, pods = true })
  tracking.start(server)
  ttlafterfinished.start(server)
end


return M
