-- attack: type says table of what reconcile returns, a number, and of its status.
-- expect: error /returned/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    type = function() return "table" end
    return 7
  end,
}
