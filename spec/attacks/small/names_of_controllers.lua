-- attack: one that is longer than a label may be.
-- expect: refused /name/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  reconciles = Thing,
  name = ("a"):rep(64),
  reconcile = function()
    return
  end,
}
