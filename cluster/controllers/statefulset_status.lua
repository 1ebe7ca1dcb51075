--- The status of a StatefulSet, from its pods.
---
--- Rules: kubernetes/pkg/controller/statefulset/{stateful_set_control,stateful_set_utils}.go (updateStatus,
--- completeRollingUpdate).
local pods = require "cluster.controllers.pods"
local revisions = require "cluster.controllers.statefulset_revisions"

local M = {}


local function some(count)
  return count > 0 and count or nil
end


--- @param all table the pods, those that are too many as well
--- @return table status, number|nil seconds after which a pod will be available
function M.of(set, all, current, update)
  local ready, available, updated, on_current, again = 0, 0, 0, 0, nil
  for _, pod in ipairs(all) do
    local revision = revisions.of(pod)
    local is_available, seconds_left = pods.is_available(pod, set.spec.minReadySeconds)
    ready = ready + (pods.is_ready(pod) and 1 or 0)
    available = available + (is_available and 1 or 0)
    if not pod.metadata.deletionTimestamp then
      updated = updated + (revision == update.metadata.name and 1 or 0)
      on_current = on_current + (revision == current.metadata.name and 1 or 0)
    end
    if seconds_left and seconds_left > 0 then
      again = math.min(seconds_left, again or seconds_left)
    end
  end
  local wanted = set.spec.replicas
  local is_done = set.spec.updateStrategy.type == "RollingUpdate" and updated == wanted and ready == wanted
    and #all == wanted
  return {
    observedGeneration = set.metadata.generation,
    replicas = #all,
    readyReplicas = some(ready),
    availableReplicas = available,
    currentReplicas = some(is_done and updated or on_current),
    updatedReplicas = some(updated),
    currentRevision = (is_done and update or current).metadata.name,
    updateRevision = update.metadata.name,
    collisionCount = 0,
  }, again
end


return M
