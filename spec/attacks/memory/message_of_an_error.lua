-- attack: errors whose messages have a megabyte, of each sixty objects.
-- expect: held
-- objects: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    error(("m"):rep(1000000))
  end,
}
