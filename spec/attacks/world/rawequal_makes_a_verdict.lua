-- attack: rawequal says yes, so that a plain table counts as what ctx.invalid gives, with an outcome of the script's.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    rawequal = function() return true end
    return { outcome = 7, field = {}, message = function() end }
  end,
}
