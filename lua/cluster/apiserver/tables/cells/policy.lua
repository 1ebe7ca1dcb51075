--- Cells of the kinds of policy. Rules: kubernetes/pkg/printers/internalversion/printers.go.
local age = require "cluster.apiserver.tables.age"

local M = {}


local function shown(number_or_percent)
  return number_or_percent and tostring(number_or_percent) or "N/A"
end


--- @return table cells in the order of kinds.lua
function M.PodDisruptionBudget(obj, now)
  local spec, status = obj.spec or {}, obj.status or {}
  return {
    obj.metadata.name, shown(spec.minAvailable), shown(spec.maxUnavailable), status.disruptionsAllowed or 0,
    age.of(obj, now),
  }
end


return M
