-- attack: __eq, __lt and __le that never end, and in results of the host.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local forever = { __eq = function() while true do end end, __lt = function() while true do end end }
    local a, b = setmetatable({}, forever), setmetatable({}, forever)
    return a == b or a < b
  end,
}
