-- Runs a command in a pod at a set time: the At operator of "Programming Kubernetes".
-- The phases of an At: PENDING (not yet due) -> RUNNING (its pod exists) -> DONE (the pod ended).
local moonloop = require "moonloop"
local time = require "moonloop.time"

local At = moonloop.kind("cnat.programming-kubernetes.info/v1alpha1", "At")
local Pod = moonloop.kind("v1", "Pod")

--- The instant of a schedule like 2026-07-03T10:02:00Z in seconds, or nil and the reason.
local function due(schedule)
  local year, month, day, hour, min, sec =
    schedule:match("^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)Z$")
  if not year then
    return nil, ("'%s' is no UTC instant like 2026-07-03T10:02:00Z"):format(schedule)
  end
  return time.utc { year = year, month = month, day = day, hour = hour, min = min, sec = sec }
end


local function words(line)
  local list = moonloop.array {}
  for word in line:gmatch("%S+") do
    list[#list + 1] = word
  end
  return list
end


local function pod_for(at)
  return {
    apiVersion = "v1",
    kind = "Pod",
    metadata = { name = at.metadata.name .. "-pod", labels = { app = at.metadata.name } },
    spec = {
      containers = { { name = "busybox", image = "busybox", command = words(at.spec.command) } },
      restartPolicy = "OnFailure",
    },
  }
end


local function finished(pod)
  return pod.status.phase == "Succeeded" or pod.status.phase == "Failed"
end


return moonloop.controller {
  name = "cnat",
  reconciles = At,
  owns = { Pod },

  reconcile = function(at, ctx)
    if at.status.phase == "DONE" then
      return
    end
    local instant, why = due(at.spec.schedule)
    if not instant then
      return ctx.invalid("spec.schedule", why)
    end
    if instant > ctx.now() then
      return { status = { phase = "PENDING" }, requeue_at = instant }
    end
    local pod = assert(ctx.ensure(pod_for(at)))
    return { status = { phase = finished(pod) and "DONE" or "RUNNING" } }
  end,
}
