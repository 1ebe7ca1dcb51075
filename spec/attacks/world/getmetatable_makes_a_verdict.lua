-- attack: getmetatable is asked by nobody when a result is told apart.
-- expect: error /unknown field/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    getmetatable = function() return getmetatable end
    return { outcome = "invalid", field = "x", message = "y" }
  end,
}
