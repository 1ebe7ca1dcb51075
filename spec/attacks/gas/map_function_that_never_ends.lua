-- attack: a watch function loops.
-- expect: limit cpu
-- touches: 3
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Part = moonloop.kind("attacks.test/v1", "Part")

return moonloop.controller {
  name = "attack",
  reconciles = Part,
  watches = { moonloop.watch(Thing, function() while true do end end) },
  reconcile = function()
    return
  end,
}
