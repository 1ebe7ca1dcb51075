--- A Job's policies: podFailurePolicy for a failed pod, successPolicy for the completed indexes.
---
--- Rules: kubernetes/pkg/controller/job/{pod_failure_policy,success_policy}.go.
local indexes = require "cluster.controllers.job_indexes"

local M = {}


local function contains(list, value)
  for _, other in ipairs(list) do
    if other == value then
      return true
    end
  end
  return false
end


-- The container that ended in a way that the rule means, or nil.
local function container_that_met(pod, rule)
  for _, name in ipairs { "containerStatuses", "initContainerStatuses" } do
    for _, container in ipairs((pod.status or {})[name] or {}) do
      local over = container.state and container.state.terminated
      local is_meant = not rule.containerName or rule.containerName == container.name
      if over and over.exitCode ~= 0 and is_meant
        and contains(rule.values, over.exitCode) == (rule.operator == "In") then
        return container
      end
    end
  end
end


local function condition_that_met(pod, patterns)
  for _, condition in ipairs((pod.status or {}).conditions or {}) do
    for _, pattern in ipairs(patterns) do
      if pattern.type == condition.type and pattern.status == condition.status then
        return condition
      end
    end
  end
end


--- Returns the action of the first rule that a failed pod meets.
--- @return string|nil action, string|nil message  the message says why, where the action is FailJob
function M.on_failure(job, pod)
  for i, rule in ipairs((job.spec.podFailurePolicy or {}).rules or {}) do
    local who, what = pod.metadata.namespace .. "/" .. pod.metadata.name, nil
    local container = rule.onExitCodes and container_that_met(pod, rule.onExitCodes)
    local condition = not rule.onExitCodes and condition_that_met(pod, rule.onPodConditions or {})
    if container then
      what = ("Container %s for pod %s failed with exit code %d"):format(container.name, who,
        container.state.terminated.exitCode)
    elseif condition then
      what = ("Pod %s has condition %s"):format(who, condition.type)
    end
    if what then
      return rule.action, ("%s matching %s rule at index %d"):format(what, rule.action, i - 1)
    end
  end
end


--- Returns true if a failed pod counts against the limits.
function M.counts(job, pod)
  return M.on_failure(job, pod) ~= "Ignore"
end


local function is_met(rule, done, completions)
  if not rule.succeededIndexes then
    return rule.succeededCount ~= nil and indexes.count(done) >= rule.succeededCount
  end
  local index_count, have = 0, 0
  for index in pairs(indexes.read(rule.succeededIndexes, completions)) do
    index_count = index_count + 1
    have = have + (done[index] and 1 or 0)
  end
  return index_count > 0 and (have == index_count or rule.succeededCount ~= nil and have >= rule.succeededCount)
end


--- Why the Job has succeeded before all its indexes have, or nil.
function M.success(job, done)
  for i, rule in ipairs(next(done) and (job.spec.successPolicy or {}).rules or {}) do
    if is_met(rule, done, job.spec.completions) then
      return ("Matched rules at index %d"):format(i - 1)
    end
  end
end


return M
