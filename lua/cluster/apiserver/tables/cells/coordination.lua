--- Cells of the kinds of coordination.k8s.io. Rules: kubernetes/pkg/printers/internalversion/printers.go.
local age = require "cluster.apiserver.tables.age"

local M = {}


--- @return table cells in the order of kinds.lua
function M.Lease(obj, now)
  return { obj.metadata.name, obj.spec and obj.spec.holderIdentity or "", age.of(obj, now) }
end


return M
