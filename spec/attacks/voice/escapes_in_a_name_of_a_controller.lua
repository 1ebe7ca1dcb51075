-- attack: a controller's name with a newline and a line of the host's.
-- expect: refused /name/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  reconciles = Thing,
  name = "attack\n2026-01-01T00:00:00.000Z error host: FORGED",
  reconcile = function()
    return
  end,
}
