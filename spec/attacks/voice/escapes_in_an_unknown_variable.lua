-- attack: the name of a variable that does not exist has a newline, which the message repeats.
-- expect: error /there is no variable/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local name = "\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"
    return _ENV[name]
  end,
}
