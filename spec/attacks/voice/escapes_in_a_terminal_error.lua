-- attack: ctx.terminal with a line of the host's.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    return ctx.terminal "why\n2026-01-01T00:00:00.000Z error host: FORGED\27]0;x\7"
  end,
}
