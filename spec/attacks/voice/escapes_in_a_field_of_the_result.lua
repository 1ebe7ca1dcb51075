-- attack: reconcile returns a field that does not exist, with a newline in its name.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { ["\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"] = 1 }
  end,
}
