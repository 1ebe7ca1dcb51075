-- attack: functions whose names have newlines stand in the traceback.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = {}
    t["\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"] = function() error "no" end
    t["\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"]()
  end,
}
