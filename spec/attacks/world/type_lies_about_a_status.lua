-- attack: type says table of a status that is a function.
-- expect: error /status/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    type = function() return "table" end
    return { status = function() end }
  end,
}
