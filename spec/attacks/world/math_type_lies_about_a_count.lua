-- attack: math.type says integer, so that max_concurrent is a fraction, then a string.
-- expect: refused /max_concurrent/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
math.type = function() return "integer" end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  max_concurrent = 1.5,
  reconcile = function()
    return
  end,
}
