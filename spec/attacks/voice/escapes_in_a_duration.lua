-- attack: a duration that is none has newlines, which the message repeats.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { requeue_after = "5m\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J" }
  end,
}
