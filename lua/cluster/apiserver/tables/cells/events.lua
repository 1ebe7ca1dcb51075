--- Cells of the kinds of events.k8s.io.
local event = require "cluster.apiserver.tables.cells.event"

local M = {}


--- @return table cells in the order of kinds.lua
function M.Event(obj, now)
  return event(obj, now, obj.regarding or {}, {
    message = obj.note or "", count = obj.deprecatedCount, first = obj.deprecatedFirstTimestamp,
    last = obj.deprecatedLastTimestamp, source = obj.deprecatedSource,
  })
end


return M
