--- Cells of a job. Rules: kubernetes/pkg/printers/internalversion/printers.go (printJob).
local age = require "cluster.apiserver.tables.age"
local text = require "cluster.apiserver.tables.text"

-- Conditions that name a job's state, the first that holds counts. A job on its way out stands between.
local ENDED = { { "Complete", "Complete" }, { "Failed", "Failed" } }
local ON_THE_WAY = {
  { "Suspended", "Suspended" }, { "FailureTarget", "FailureTarget" }, { "SuccessCriteriaMet", "SuccessCriteriaMet" },
}


local function first_true(conditions, list)
  for _, pair in ipairs(list) do
    if text.condition(conditions, pair[1]) == "True" then
      return pair[2]
    end
  end
  return nil
end


local function job_state(obj, status)
  return first_true(status.conditions, ENDED) or obj.metadata.deletionTimestamp and "Terminating"
    or first_true(status.conditions, ON_THE_WAY) or "Running"
end


local function completions(spec, status)
  local done = status.succeeded or 0
  if spec.completions then
    return ("%d/%d"):format(done, spec.completions)
  elseif (spec.parallelism or 0) > 1 then
    return ("%d/1 of %d"):format(done, spec.parallelism)
  end
  return ("%d/1"):format(done)
end


local function duration(status, now)
  local from = age.instant(status.startTime)
  if not from then
    return ""
  end
  return age.duration((age.instant(status.completionTime) or now) - from)
end


return function(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local names, images = text.containers(spec.template.spec)
  return {
    obj.metadata.name, job_state(obj, status), completions(spec, status), duration(status, now), age.of(obj, now),
    names, images, text.selector(spec.selector, spec.selector and "<none>" or ""),
  }
end
