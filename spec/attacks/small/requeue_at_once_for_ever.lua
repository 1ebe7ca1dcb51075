-- attack: requeue_after = 0, for ever: a whole processor.
-- expect: held
-- for: 3s
-- share: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { requeue_after = 0 }
  end,
}
