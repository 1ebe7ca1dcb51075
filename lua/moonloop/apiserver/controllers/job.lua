--- Jobs: pods until enough of them have succeeded, or too many have failed.
---
--- Rules: kubernetes/pkg/controller/job/{job_controller,backoff_utils,indexed_job_utils}.go.
local host = require "moonloop.host"
local job_status = require "moonloop.apiserver.controllers.job_status"
local pods = require "moonloop.apiserver.controllers.pods"
local runner = require "moonloop.apiserver.controllers.runner"
local instant = require "moonloop.apiserver.instant"

local M = {}

local INDEX = "batch.kubernetes.io/job-completion-index"

-- Pauses behind failures: 10 s, doubling up to 10 minutes.
local PAUSE_FIRST, PAUSE_MAX = 10, 600


local function is_indexed(job)
  return job.spec.completionMode == "Indexed"
end


local function index_of(pod)
  return math.tointeger(tonumber((pod.metadata.annotations or {})[INDEX]))
end


-- What the pods say: lists of the active, the succeeded and the failed, and the set of indexes done.
local function tally(all)
  local found = { active = {}, succeeded = {}, failed = {}, indexes = {}, ready = 0, terminating = 0 }
  for _, pod in ipairs(all) do
    local phase = pod.status and pod.status.phase
    if phase == "Succeeded" then
      found.succeeded[#found.succeeded + 1] = pod
      found.indexes[index_of(pod) or -1] = true
    elseif phase == "Failed" then
      found.failed[#found.failed + 1] = pod
    elseif pod.metadata.deletionTimestamp then
      found.terminating = found.terminating + 1
    else
      found.active[#found.active + 1] = pod
      found.ready = found.ready + (pods.is_ready(pod) and 1 or 0)
    end
  end
  return found
end


local function succeeded(job, found)
  if not is_indexed(job) then
    return #found.succeeded
  end
  local count = 0
  for index = 0, job.spec.completions - 1 do
    count = count + (found.indexes[index] and 1 or 0)
  end
  return count
end


local function is_done(job, found)
  if job.spec.completions then
    return succeeded(job, found) >= job.spec.completions
  end
  return #found.succeeded > 0 and #found.active == 0 -- a work queue: one that succeeded ends it
end


-- How many should be active now.
local function wanted_active(job, found)
  local spec = job.spec
  if spec.suspend then
    return 0
  elseif spec.completions then
    return math.min(spec.parallelism, spec.completions - succeeded(job, found))
  end
  return #found.succeeded > 0 and #found.active or spec.parallelism
end


local function free_indexes(job, found, count)
  local taken, free = {}, {}
  for _, pod in ipairs(found.active) do
    taken[index_of(pod)] = true
  end
  for index = 0, job.spec.completions - 1 do
    if #free < count and not found.indexes[index] and not taken[index] then
      free[#free + 1] = index
    end
  end
  return free
end


local function add_index(job, pod, index)
  pod.metadata.annotations = pod.metadata.annotations or {}
  pod.metadata.annotations[INDEX] = tostring(index)
  pod.metadata.labels[INDEX] = tostring(index)
  pod.metadata.generateName = ("%s-%d-"):format(job.metadata.name, index)
  pod.spec.hostname = ("%s-%d"):format(job.metadata.name, index)
  for _, list in ipairs { pod.spec.initContainers or {}, pod.spec.containers } do
    for _, container in ipairs(list) do
      container.env = container.env or host.json.array {}
      table.insert(container.env, {
        name = "JOB_COMPLETION_INDEX",
        valueFrom = { fieldRef = { fieldPath = ("metadata.labels['%s']"):format(INDEX) } },
      })
    end
  end
end


local function create(api, job, found, count)
  local indexes = is_indexed(job) and free_indexes(job, found, count)
  for i = 1, count do
    local pod = pods.from_template(job.spec.template)
    pod.metadata.generateName = job.metadata.name .. "-"
    if indexes then
      if not indexes[i] then
        return
      end
      add_index(job, pod, indexes[i])
    end
    local made = api.create(pod, job)
    api.event(job, "Normal", "SuccessfulCreate", "Created pod: " .. made.metadata.name)
    found.active[#found.active + 1] = made
  end
end


local function delete_active(api, job, found, count)
  for _ = 1, count do
    local pod = table.remove(found.active)
    api.delete(pod)
    api.event(job, "Normal", "SuccessfulDelete", "Deleted pod: " .. pod.metadata.name)
    found.terminating = found.terminating + 1
  end
end


local function finished_at(pod)
  for _, container in ipairs(pod.status.containerStatuses or {}) do
    local over = container.state and container.state.terminated
    if over then
      return (instant.read(over.finishedAt))
    end
  end
  return (instant.read(pod.metadata.creationTimestamp))
end


-- Seconds until another pod may be made after the latest failure.
local function pause_left(found)
  if #found.failed == 0 then
    return 0
  end
  local latest, times = 0, {}
  for _, pod in ipairs(found.failed) do
    times[#times + 1] = finished_at(pod)
    latest = math.max(latest, times[#times])
  end
  local since = 0
  for _, pod in ipairs(found.succeeded) do
    since = math.max(since, finished_at(pod))
  end
  local in_a_row = 0
  for _, time in ipairs(times) do
    in_a_row = in_a_row + (time >= since and 1 or 0)
  end
  if in_a_row == 0 then
    return 0
  end
  return math.max(0, latest + math.min(PAUSE_FIRST * 2 ^ (in_a_row - 1), PAUSE_MAX) - host.now())
end


-- How often containers of active pods were started again.
local function restarts(found)
  local count = 0
  for _, pod in ipairs(found.active) do
    for _, container in ipairs(pod.status and pod.status.containerStatuses or {}) do
      count = count + container.restartCount
    end
  end
  return count
end


-- Why the job has failed, if it has: reason, message.
local function failure_of(job, found)
  local spec, status = job.spec, job.status or {}
  local tries = #found.failed
  if spec.template.spec.restartPolicy == "OnFailure" then
    tries = tries + restarts(found)
  end
  if tries > spec.backoffLimit then
    return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
  elseif spec.activeDeadlineSeconds and status.startTime and not spec.suspend
    and host.now() >= instant.read(status.startTime) + spec.activeDeadlineSeconds then
    return "DeadlineExceeded", "Job was active longer than specified deadline"
  end
end


-- Makes or deletes pods. @return number|nil seconds after which to look again
local function manage(api, job, found)
  local missing = wanted_active(job, found) - #found.active
  if missing < 0 then
    delete_active(api, job, found, -missing)
  elseif missing > 0 then
    local left = pause_left(found)
    if left > 0 then
      return left
    end
    create(api, job, found, missing)
  end
end


local function deadline_left(job)
  local seconds, since = job.spec.activeDeadlineSeconds, (job.status or {}).startTime
  return seconds and since and math.max(0, instant.read(since) + seconds - host.now())
end


-- Deletes the finished job when its time is over.
local function expire(api, job)
  local ttl = job.spec.ttlSecondsAfterFinished
  if not ttl then
    return
  end
  local left = instant.read(job_status.finished_at(job)) + ttl - host.now()
  if left > 0 then
    return left
  end
  api.delete(job)
end


local function sooner(a, b)
  return a and b and math.min(a, b) or a or b
end


local function reconcile(api, job)
  if job.metadata.deletionTimestamp then
    return
  elseif job_status.finished_at(job) then
    return expire(api, job)
  end
  local found, again = tally(api.owned(job, "", "v1", "pods")), nil
  local reason, message = failure_of(job, found)
  if reason then
    delete_active(api, job, found, #found.active)
    job_status.fail(api, job, reason, message)
  elseif is_done(job, found) then
    delete_active(api, job, found, #found.active)
    job_status.complete(api, job)
  else
    again = sooner(manage(api, job, found), deadline_left(job))
  end
  job_status.write(api, job, found, succeeded(job, found))
  return again
end


--- Starts the controller.
function M.start(server)
  runner.start(server, {
    name = "job-controller",
    kind = { "batch", "v1", "Job" },
    owns = { "pods" },
    reconcile = reconcile,
  })
end


return M
