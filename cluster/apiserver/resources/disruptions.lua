--- The status of PodDisruptionBudgets, as the disruption controller and evictions write it.
---
--- Rules: component-helpers/apps/poddisruptionbudget/helpers.go.
local host = require "cluster.host"

local M = {}

local ALLOWED = "DisruptionAllowed"


--- Sets the condition DisruptionAllowed of a status by its number of allowed disruptions.
function M.set_condition(status)
  status.conditions = status.conditions or host.json.array {}
  local condition
  for _, known in ipairs(status.conditions) do
    condition = known.type == ALLOWED and known or condition
  end
  if not condition then
    condition = { type = ALLOWED, message = "" }
    table.insert(status.conditions, condition)
  end
  local truth = status.disruptionsAllowed > 0 and "True" or "False"
  if condition.status ~= truth then
    condition.lastTransitionTime = host.timestamp()
  end
  condition.status, condition.message = truth, ""
  condition.reason = truth == "True" and "SufficientPods" or "InsufficientPods"
  condition.observedGeneration = status.observedGeneration
end


return M
