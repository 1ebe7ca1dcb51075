-- attack: the status is another each time, so that the object might wake itself.
-- expect: held
-- for: 2s
-- share: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local n = 0

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    n = n + 1
    return { status = { n = n }, requeue_after = 0 }
  end,
}
