-- attack: a text is doubled without end.
-- expect: limit memory
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = "x"
    while true do text = text .. text end
  end,
}
