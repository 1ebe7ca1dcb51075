-- attack: a function of when loops.
-- expect: limit cpu
-- touches: 3
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  when = function() while true do end end,
  reconcile = function()
    return
  end,
}
