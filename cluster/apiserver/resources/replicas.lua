--- The common parts of ReplicaSets and ReplicationControllers: their status, and how they are shown.
---
--- Rules: kubernetes/pkg/apis/apps/validation/validation.go (ValidateReplicaSetStatus), pkg/apis/core/validation/
--- validation.go (ValidateReplicationControllerStatus), pkg/printers/internalversion/printers.go.
local age = require "cluster.apiserver.tables.age"
local text = require "cluster.apiserver.tables.text"
local workload = require "cluster.apiserver.resources.workload"

local M = {}

local NUMBERS = {
  "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration", "terminatingReplicas",
}
local PARTS = { "fullyLabeledReplicas", "readyReplicas", "availableReplicas" }

--- A strategy's field_names.
M.field_names = { ["status.replicas"] = true }


--- A strategy's fields.
function M.fields(object)
  return { ["status.replicas"] = tostring(object.status.replicas) }
end


--- A strategy's validate_status.
function M.validate_status(new)
  local errors = {}
  workload.not_negative(new.status, "status", NUMBERS, errors)
  workload.check_counts(new.status, PARTS, "readyReplicas", errors)
  return errors
end


--- A strategy's cells. @param selector_text function(selector) -> its text
function M.cells(selector_text)
  return function(obj, now)
    local spec, status = obj.spec, obj.status or {}
    local names, images = text.containers(spec.template and spec.template.spec)
    return {
      obj.metadata.name, spec.replicas or 0, status.replicas or 0, status.readyReplicas or 0, age.of(obj, now),
      names, images, selector_text(spec.selector),
    }
  end
end


return M
