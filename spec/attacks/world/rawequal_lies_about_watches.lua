-- attack: rawequal says yes, so that a plain table counts as a watch, with numbers for its kind, map and when.
-- expect: refused
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
rawequal = function() return true end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  watches = { { kind = 7, map = 8, when = { 9 } } },
  reconcile = function()
    return
  end,
}
