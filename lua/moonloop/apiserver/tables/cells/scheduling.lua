--- Cells of the kinds of scheduling.k8s.io. Rules: kubernetes/pkg/printers/internalversion/printers.go.
local age = require "moonloop.apiserver.tables.age"

local M = {}


--- @return table cells in the order of columns/scheduling.lua
function M.PriorityClass(obj, now)
  return {
    obj.metadata.name, obj.value, obj.globalDefault or false, age.of(obj, now), obj.preemptionPolicy or "",
  }
end


return M
