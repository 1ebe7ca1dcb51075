-- attack: an instant long past is asked for, again and again.
-- expect: held
-- for: 3s
-- share: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { requeue_at = 1 }
  end,
}
