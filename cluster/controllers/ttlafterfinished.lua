--- Jobs that ended are deleted, with their pods, when ttlSecondsAfterFinished is over.
---
--- Rules: kubernetes/pkg/controller/ttlafterfinished/ttlafterfinished_controller.go.
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"
local job_status = require "cluster.controllers.job_status"

local M = {}


local function reconcile(api, job)
  local ttl, finished = job.spec.ttlSecondsAfterFinished, job_status.finished_at(job.status or {})
  if not ttl or not finished or job.metadata.deletionTimestamp then
    return
  end
  local seconds_left = instant.read(finished) + ttl - host.now()
  if seconds_left > 0 then
    return seconds_left
  end
  api.delete(job, "Foreground")
end


--- Starts the controller.
function M.start(server)
  controller.start(server, {
    name = "ttl-after-finished-controller",
    kind = { "batch", "v1", "Job" },
    reconcile = reconcile,
  })
end


return M
