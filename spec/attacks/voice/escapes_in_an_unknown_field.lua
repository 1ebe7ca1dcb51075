-- attack: a field of the declaration that does not exist has a newline in its name, which the message repeats.
-- expect: refused /unknown field/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  ["\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"] = 1,
  reconcile = function()
    return
  end,
}
