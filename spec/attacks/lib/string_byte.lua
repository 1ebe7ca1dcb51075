-- attack: string.byte gets each value there is in each place, and each two of them.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(string.byte)
    hostile.throw(string.byte, "abc")
  end,
}
