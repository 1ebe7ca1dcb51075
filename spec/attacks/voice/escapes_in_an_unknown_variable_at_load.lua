-- attack: the name of a variable that does not exist has a newline, which the refusal repeats.
-- expect: refused /there is no variable/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return _ENV["\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"]
  end,
}
