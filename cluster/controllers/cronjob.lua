--- CronJobs: make a Job at each time of their schedule, and delete old Jobs.
---
--- Rules: kubernetes/pkg/controller/cronjob/{cronjob_controllerv2,utils}.go.
local controller = require "cluster.controllers.controller"
local cron = require "cluster.apiserver.schedule.cron"
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"
local zone = require "moonloop.zone"
local zones = require "cluster.zones"

local M = {}

local SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
-- Clocks of several machines differ a little.
local DELTA = 0.1
local MANY = 100


-- "Complete", "Failed", or nil for a Job that has not ended.
local function ending(job)
  for _, condition in ipairs(job.status and job.status.conditions or {}) do
    if (condition.type == "Complete" or condition.type == "Failed") and condition.status == "True" then
      return condition.type
    end
  end
end


-- The Jobs that a CronJob has made.
local function jobs_of(api, object)
  local mine = {}
  for _, job in ipairs(api.list("batch", "v1", "jobs", object.metadata.namespace)) do
    for _, owner in ipairs(job.metadata.ownerReferences or {}) do
      if owner.controller and owner.uid == object.metadata.uid then
        mine[#mine + 1] = job
      end
    end
  end
  return mine
end


local function find(active, uid)
  for i, reference in ipairs(active) do
    if reference.uid == uid then
      return i
    end
  end
end


local function forget(active, uid)
  local at = find(active, uid)
  if at then
    table.remove(active, at)
  end
  return at ~= nil
end


-- Notes in the status which Jobs run and which have ended. @return table uid → true of all there are
local function note_jobs(api, object, status, jobs)
  local there = {}
  for _, job in ipairs(jobs) do
    there[job.metadata.uid] = true
    local how = ending(job)
    if not how and not find(status.active, job.metadata.uid) then
      api.event(object, "Warning", "UnexpectedJob",
        "Saw a job that the controller did not create or forgot: " .. job.metadata.name)
    elseif how and forget(status.active, job.metadata.uid) then
      api.event(object, "Normal", "SawCompletedJob",
        ("Saw completed job: %s, condition: %s"):format(job.metadata.name, how))
    end
    local done = how == "Complete" and job.status.completionTime
    if done and done > (status.lastSuccessfulTime or "") then
      status.lastSuccessfulTime = done
    end
  end
  for i = #status.active, 1, -1 do
    if not there[status.active[i].uid] then
      api.event(object, "Normal", "MissingJob", "Active job went missing: " .. status.active[i].name)
      table.remove(status.active, i)
    end
  end
end


local function delete_job(api, object, status, job)
  api.delete(job)
  forget(status.active, job.metadata.uid)
  api.event(object, "Normal", "SuccessfulDelete", "Deleted job " .. job.metadata.name)
end


-- Deletes the oldest Jobs that ended so, but for `limit`.
local function trim(api, object, status, jobs, how, limit)
  local ended = {}
  for _, job in ipairs(jobs) do
    ended[#ended + 1] = ending(job) == how and not job.metadata.deletionTimestamp and job or nil
  end
  table.sort(ended, function(a, b)
    local first, second = a.status.startTime or "~", b.status.startTime or "~"
    return first < second or first == second and a.metadata.name < b.metadata.name
  end)
  for i = 1, #ended - (limit or #ended) do
    delete_job(api, object, status, ended[i])
  end
end


-- The latest time of a schedule behind `from` that is not in the future, or nil; and how many there were.
local function latest(schedule, from, now, where)
  local first = cron.next(schedule, from, where)
  local second = first and first <= now and cron.next(schedule, first, where)
  if not first or first > now or not second or second > now then
    return first and first <= now and first or nil, 1
  end
  local between = second - first
  local missed = (now - first) // between + 1
  local found, time = nil, cron.next(schedule, first + (missed - 2) * between, where)
  while time and time <= now do
    found, time = time, cron.next(schedule, time, where)
  end
  return found, missed
end


local function start_of(object)
  return (instant.read(object.status and object.status.lastScheduleTime or object.metadata.creationTimestamp))
end


-- Seconds until the next time, or nil when there is none.
local function wait(object, schedule, now, where)
  local from = start_of(object)
  local time = cron.next(schedule, latest(schedule, from, math.floor(now), where) or from, where)
  while time and time <= now do
    time = cron.next(schedule, math.floor(now), where)
  end
  return time and time + DELTA - now
end


-- The time for which a Job is due, or nil.
local function due(api, object, schedule, now, where)
  local from, deadline = start_of(object), object.spec.startingDeadlineSeconds
  if deadline then
    from = math.max(from, math.floor(now) - deadline)
  end
  local time, missed = latest(schedule, from, math.floor(now), where)
  if time and missed > MANY then
    api.event(object, "Warning", "TooManyMissedTimes",
      "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
  end
  if time and deadline and time + deadline < now then
    api.event(object, "Warning", "MissSchedule", "Missed scheduled time to start a job: "
      .. os.date("!%a, %d %b %Y %H:%M:%S +0000", time))
    return nil
  end
  return time
end


-- An instant in a zone, as RFC 3339.
local function time_text(time, where)
  local offset = zone.at(where, time)
  if offset == 0 then
    return instant.write(time)
  end
  return os.date("!%Y-%m-%dT%H:%M:%S", time + offset)
    .. ("%s%02d:%02d"):format(offset < 0 and "-" or "+", math.abs(offset) // 3600, math.abs(offset) // 60 % 60)
end


local function new_job(object, time, where)
  local template = object.spec.jobTemplate
  local meta = template.metadata or {}
  local annotations = host.json.copy(meta.annotations or {})
  annotations[SCHEDULED] = time_text(time, where)
  return {
    apiVersion = "batch/v1", kind = "Job",
    metadata = {
      name = ("%s-%d"):format(object.metadata.name, time // 60),
      labels = meta.labels and host.json.copy(meta.labels), annotations = annotations,
    },
    spec = host.json.copy(template.spec),
  }
end


local function start(api, object, status, time, where)
  local ok, job = pcall(api.create, new_job(object, time, where), object)
  if not ok then
    api.event(object, "Warning", "FailedCreate", "Error creating job: " .. tostring(job))
    error(job, 0)
  end
  api.event(object, "Normal", "SuccessfulCreate", "Created job " .. job.metadata.name)
  table.insert(status.active, {
    apiVersion = "batch/v1", kind = "Job", name = job.metadata.name, namespace = job.metadata.namespace,
    uid = job.metadata.uid, resourceVersion = job.metadata.resourceVersion,
  })
  status.lastScheduleTime = instant.write(time)
end


-- Starts a Job if it is time for one.
local function run(api, object, status, jobs, now)
  local where, spec = zones.find(object.spec.timeZone or "UTC"), object.spec
  local schedule = cron.parse(spec.schedule)
  if not where or not schedule then
    api.event(object, "Warning", where and "UnparseableSchedule" or "UnknownTimeZone",
      where and "unparseable schedule: " .. spec.schedule or ("invalid timeZone: %q"):format(spec.timeZone))
    return nil
  end
  local time = due(api, object, schedule, now, where)
  if time and status.lastScheduleTime ~= instant.write(time) then
    if spec.concurrencyPolicy == "Forbid" and #status.active > 0 then
      api.event(object, "Normal", "JobAlreadyActive",
        "Not starting job because prior execution is running and concurrency policy is Forbid")
    else
      for _, job in ipairs(spec.concurrencyPolicy == "Replace" and jobs or {}) do
        if find(status.active, job.metadata.uid) then
          delete_job(api, object, status, job)
        end
      end
      start(api, object, status, time, where)
    end
  end
  return wait(object, schedule, now, where)
end


local function reconcile(api, object)
  local jobs, status = jobs_of(api, object), host.json.copy(object.status or {})
  status.active = status.active or host.json.array {}
  note_jobs(api, object, status, jobs)
  local again, failure = nil, nil
  if not object.metadata.deletionTimestamp then
    if not object.spec.suspend then
      local ok, result = pcall(run, api, object, status, jobs, host.now())
      again, failure = ok and result or nil, not ok and result or nil
    end
    trim(api, object, status, jobs, "Complete", object.spec.successfulJobsHistoryLimit)
    trim(api, object, status, jobs, "Failed", object.spec.failedJobsHistoryLimit)
  end
  status.active = #status.active > 0 and status.active or nil
  api.write_status(object, status)
  if failure then
    error(failure, 0)
  end
  return again
end


--- Starts the controller.
function M.start(server)
  controller.start(server, {
    name = "cronjob-controller", kind = { "batch", "v1", "CronJob" }, owns = { "jobs.batch" }, reconcile = reconcile,
  })
end


return M
