-- attack: a status full of newlines and escapes, with conditions of the same.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local bad = "\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"
    return { status = { [bad] = bad, conditions = { { type = bad, status = bad, reason = bad, message = bad } } } }
  end,
}
