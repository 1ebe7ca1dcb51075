-- attack: string.match says yes, so that a path with a newline becomes the name of a controller.
-- expect: refused /name/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
string.match = function(text, pattern) return pattern ~= "-$" and text or nil end

return moonloop.controller {
  reconciles = Thing,
  name = "../../x\n2026-01-01T00:00:00.000Z error host: FORGED",
  reconcile = function()
    return
  end,
}
