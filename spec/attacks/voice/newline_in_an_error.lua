-- attack: an error whose message has a line of the host's in it.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    error "no\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"
  end,
}
