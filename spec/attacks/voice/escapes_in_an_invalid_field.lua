-- attack: ctx.invalid with a field and a why full of newlines and escapes.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    return ctx.invalid("spec\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J", "why\n\rFORGED\u{9b}31m")
  end,
}
