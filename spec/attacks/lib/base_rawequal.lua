-- attack: rawequal gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local real = rawequal
    hostile.throw(real)
    hostile.throw(real, { 1, 2, a = 3 })
  end,
}
