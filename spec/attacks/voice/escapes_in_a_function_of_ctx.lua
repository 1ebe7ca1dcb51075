-- attack: the name of a function that ctx does not have has a newline.
-- expect: error /ctx has no/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    return ctx["\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"]
  end,
}
