-- attack: tables are kept without end.
-- expect: limit memory
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    while true do list[#list + 1] = {} end
  end,
}
