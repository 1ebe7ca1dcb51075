--- The pods of a Job: their results, which of them are too many, and the template of the next ones.
---
--- Rules: kubernetes/pkg/controller/job/{job_controller,indexed_job_utils}.go.
local backoff = require "cluster.controllers.job_backoff"
local host = require "cluster.host"
local indexes = require "cluster.controllers.job_indexes"
local pods = require "cluster.controllers.pods"
local policies = require "cluster.controllers.job_policies"
local tracking = require "cluster.controllers.job_tracking"

local M = {}

local INDEX = "batch.kubernetes.io/job-completion-index"
-- How often an index failed before this pod: what counts, and what podFailurePolicy ignores.
local FAILURES, IGNORED = "batch.kubernetes.io/job-index-failure-count",
  "batch.kubernetes.io/job-index-ignored-failure-count"
local GENERATE_NAME_MAX = 58


function M.is_indexed(job)
  return job.spec.completionMode == "Indexed"
end


local function number(pod, annotation)
  return math.tointeger((pod.metadata.annotations or {})[annotation])
end


-- The index of a pod, if the Job has it.
local function index_of(job, pod)
  local index = number(pod, INDEX)
  return index and index >= 0 and index < job.spec.completions and index or nil
end


--- Returns true if pods are only replaced when they have failed, not already when they are being deleted.
function M.waits_for_failed(job)
  return job.spec.podReplacementPolicy == "Failed" or job.spec.podFailurePolicy ~= nil
end


--- Returns true if a pod failed. A pod that is being deleted has failed, unless the Job waits until it has ended.
function M.is_failed(job, pod)
  local phase = pod.status and pod.status.phase
  return phase == "Failed"
    or pod.metadata.deletionTimestamp ~= nil and phase ~= "Succeeded" and not M.waits_for_failed(job)
end


--- Returns true if the Job counts a pod: an indexed Job only counts pods of its indexes.
function M.is_counted(job, pod)
  return not M.is_indexed(job) or index_of(job, pod) ~= nil
end


-- How often the index of a pod has failed, with this one if that failed.
local function failures(pod)
  return number(pod, FAILURES) or 0
end


local function fails_index(job, pod)
  if not M.is_failed(job, pod) then
    return false
  end
  local action = policies.on_failure(job, pod)
  return action == "FailIndex" or action ~= "Ignore" and failures(pod) >= job.spec.backoffLimitPerIndex
end


local function note_indexes(job, found, status)
  local completions = job.spec.completions
  found.done = indexes.read(status.completedIndexes, completions)
  found.lost = job.spec.backoffLimitPerIndex and indexes.read(status.failedIndexes, completions)
  for _, pod in ipairs(found.all) do
    local index = tracking.is_tracked(pod) and index_of(job, pod)
    if index and pod.status and pod.status.phase == "Succeeded" then
      found.done[index] = true
    elseif index and found.lost and fails_index(job, pod) then
      found.lost[index] = true
    end
  end
  found.succeeded = indexes.count(found.done)
end


-- Of each index that is to be tried again, the pod that failed last: its successor goes on with its count.
local function note_predecessors(job, found)
  local busy = {}
  for _, pod in ipairs(found.active) do
    busy[index_of(job, pod) or -1] = true
  end
  for _, pod in ipairs(found.new_failed) do
    local index = index_of(job, pod)
    local other = found.predecessors[index]
    if not (found.done[index] or found.lost[index] or busy[index])
      and not (other and (failures(pod) < failures(other) or backoff.is_earlier(pod, other))) then
      found.predecessors[index] = pod
    end
  end
end


--- Sorts and counts the pods of a Job by their state.
--- @param status table of the Job  @param counted_pods table set of uids that are in its counts, though still tracked
--- @return table { all =, active =, new_succeeded =, new_failed = (lists of pods), ready =, terminating =, succeeded =,
---   failed = (counts), done =, lost = (sets of indexes, where the Job has them), predecessors = (index → pod) }
function M.find(api, job, status, counted_pods)
  local found = {
    all = api.owned(job, "", "v1", "pods"), active = {}, new_succeeded = {}, new_failed = {}, predecessors = {},
    ready = 0, terminating = 0, succeeded = status.succeeded or 0, failed = status.failed or 0,
  }
  for _, pod in ipairs(found.all) do
    if pods.is_active(pod) then
      found.active[#found.active + 1] = pod
      found.ready = found.ready + (pods.is_ready(pod) and 1 or 0)
    elseif pods.is_terminating(pod) then
      found.terminating = found.terminating + 1
    end
    if tracking.is_tracked(pod) and not counted_pods[pod.metadata.uid] and M.is_counted(job, pod) then
      if pod.status and pod.status.phase == "Succeeded" then
        table.insert(found.new_succeeded, pod)
      elseif M.is_failed(job, pod) then
        table.insert(found.new_failed, pod)
        found.failed = found.failed + (policies.counts(job, pod) and 1 or 0)
      end
    end
  end
  if M.is_indexed(job) then
    note_indexes(job, found, status)
    if found.lost then
      note_predecessors(job, found)
    end
  else
    found.succeeded = found.succeeded + #found.new_succeeded
  end
  return found
end


--- Which of the active pods go: those without an index of their own, and then as many as are too many.
--- @return table pods that go, table pods that stay
function M.surplus(job, active, count)
  local sorted, has_to_go, index_stays, surplus = table.move(active, 1, #active, 1, {}), {}, {}, 0
  pods.sort_by_departure(sorted)
  for i = #sorted, 1, -1 do -- the best of each index stays
    local index = M.is_indexed(job) and (index_of(job, sorted[i]) or -1)
    has_to_go[i] = index == -1 or index_stays[index] or false
    surplus = surplus + (has_to_go[i] and 1 or 0)
    index_stays[index or 0] = index and true
  end
  local go, stay = {}, {}
  for i, pod in ipairs(sorted) do
    local more = not has_to_go[i] and surplus < count
    surplus = surplus + (more and 1 or 0)
    local list = (has_to_go[i] or more) and go or stay
    list[#list + 1] = pod
  end
  return go, stay
end


-- The first indexes that are neither over nor at work.
local function free_indexes(job, found, count)
  local is_at_work, free = {}, {}
  for _, pod in ipairs(found.all) do
    local is_busy = pods.is_active(pod) or M.waits_for_failed(job) and pods.is_terminating(pod)
    is_at_work[is_busy and index_of(job, pod) or -1] = true
  end
  for index = 0, job.spec.completions - 1 do
    if #free == count then
      break
    elseif not (is_at_work[index] or found.done[index] or found.lost and found.lost[index]) then
      free[#free + 1] = index
    end
  end
  return free
end


-- Of these indexes, those whose pause is over. @return table indexes, number|nil seconds until the next is
local function without_pause(found, free)
  local now, again = {}, nil
  for _, index in ipairs(free) do
    local before = found.predecessors[index]
    local failure_count = before and failures(before) + (number(before, IGNORED) or 0)
    local seconds_left = before and backoff.seconds_left_after(before, failure_count) or 0
    if seconds_left == 0 then
      now[#now + 1] = index
    else
      again = math.min(seconds_left, again or seconds_left)
    end
  end
  return now, again
end


local function add_variable(container)
  container.env = container.env or host.json.array {}
  for _, variable in ipairs(container.env) do
    if variable.name == "JOB_COMPLETION_INDEX" then
      return
    end
  end
  table.insert(container.env, {
    name = "JOB_COMPLETION_INDEX",
    valueFrom = { fieldRef = { fieldPath = ("metadata.labels['%s']"):format(INDEX) } },
  })
end


local function add_index(job, pod, index, before)
  local text, meta = tostring(index), pod.metadata
  meta.annotations = meta.annotations or {}
  meta.annotations[INDEX], meta.labels[INDEX] = text, text
  local tail = "-" .. text .. "-"
  meta.generateName = job.metadata.name:sub(1, GENERATE_NAME_MAX - #tail) .. tail
  pod.spec.hostname = job.metadata.name .. "-" .. text
  for _, list in ipairs { pod.spec.initContainers or {}, pod.spec.containers } do
    for _, container in ipairs(list) do
      add_variable(container)
    end
  end
  if job.spec.backoffLimitPerIndex then
    local counts = before and policies.counts(job, before)
    local ignored = before and (number(before, IGNORED) or 0) + (counts and 0 or 1) or 0
    meta.annotations[FAILURES] = tostring(before and failures(before) + (counts and 1 or 0) or 0)
    meta.annotations[IGNORED] = ignored > 0 and tostring(ignored) or nil
  end
end


local function make(api, job, index, before)
  local pod = pods.from_template(job.spec.template)
  pod.metadata.generateName = job.metadata.name .. "-"
  tracking.track(pod)
  if index then
    add_index(job, pod, index, before)
  end
  return pods.create(api, pod, job)
end


--- Makes pods, BURST_MAX at most. @return table those made, number|nil seconds after which more may be
function M.create(api, job, found, count)
  local made, again, free = {}, nil, nil
  count = math.min(count, pods.BURST_MAX)
  if M.is_indexed(job) then
    free = free_indexes(job, found, count)
    if job.spec.backoffLimitPerIndex then
      free, again = without_pause(found, free)
    end
  end
  for i = 1, free and #free or count do
    made[i] = make(api, job, free and free[i], free and found.predecessors[free[i]])
  end
  return made, again
end


--- Deletes active pods and says so.
function M.delete(api, job, found, list)
  for _, pod in ipairs(list) do
    api.delete(pod)
    api.event(job, "Normal", "SuccessfulDelete", "Deleted pod: " .. pod.metadata.name)
    found.ready = found.ready - (pods.is_ready(pod) and 1 or 0)
    found.terminating = found.terminating + 1
  end
end


return M
