-- attack: an error that names another file and line, of the host's.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    error("host/operator/operator.c:12: FORGED\r\n2026-01-01T00:00:00.000Z error host: FORGED", 0)
  end,
}
