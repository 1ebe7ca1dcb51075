--- Pods of a Job have a finalizer until the Job has counted them, so that a deleted pod is still counted.
---
--- Rules: kubernetes/pkg/controller/job/{job_controller,tracking_utils}.go.
local client = require "cluster.controllers.client"
local host = require "cluster.host"

local M = {}

local FINALIZER = "batch.kubernetes.io/job-tracking"


local function without(finalizers)
  local other_finalizers = host.json.array {}
  for _, finalizer in ipairs(finalizers or {}) do
    if finalizer ~= FINALIZER then
      other_finalizers[#other_finalizers + 1] = finalizer
    end
  end
  return other_finalizers
end


--- Returns true if the pod has not been counted yet.
function M.is_tracked(pod)
  local finalizers = pod.metadata.finalizers or {}
  return #without(finalizers) < #finalizers
end


--- Tracks a pod that is to be created.
function M.track(pod)
  local finalizers = without(pod.metadata.finalizers)
  finalizers[#finalizers + 1] = FINALIZER
  pod.metadata.finalizers = finalizers
end


--- Lets a pod go: it is counted, or not to be counted. It may have changed since it was read, and be gone.
function M.release(api, pod)
  local meta = pod.metadata
  meta.finalizers = without(meta.finalizers)
  local now = api.get("", "v1", "pods", meta.namespace, meta.name)
  if not now or now.metadata.uid ~= meta.uid or not M.is_tracked(now) then
    return
  end
  local other_finalizers = without(now.metadata.finalizers)
  now.apiVersion, now.kind = "v1", "Pod"
  api.patch(now, {
    metadata = {
      resourceVersion = now.metadata.resourceVersion,
      finalizers = #other_finalizers > 0 and other_finalizers or host.json.null,
    },
  })
end


-- True if the Job that would count a pod is there.
local function has_job(server, entry)
  for _, owner in ipairs(entry.owners or {}) do
    if owner.controller and owner.kind == "Job" then
      local job = server.store:get("jobs.batch", entry.namespace, owner.name)
      return job ~= nil and job.uid == owner.uid
    end
  end
  return false
end


--- Lets pods go from now on whose Job is gone or has let go of them.
function M.start(server)
  local api = client.new(server, "job-controller")
  server.store:subscribe(function(event)
    local entry = event.entry
    if event.type == "DELETED" or not entry.text:find(FINALIZER, 1, true) or has_job(server, entry) then
      return
    end
    host.defer(function()
      local pod = api.get("", "v1", "pods", entry.namespace, entry.name)
      if pod and M.is_tracked(pod) and not has_job(server, entry) then
        M.release(api, pod)
      end
    end)
  end, { pods = true })
end


return M
