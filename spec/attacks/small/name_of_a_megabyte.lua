-- attack: a controller's name of a megabyte, which the message repeats.
-- expect: refused /name/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  reconciles = Thing,
  name = ("a"):rep(1000000),
  reconcile = function()
    return
  end,
}
