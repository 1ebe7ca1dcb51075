-- attack: moonloop.watch gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(moonloop.watch)
    hostile.throw(moonloop.watch, Thing)
    hostile.throw_one(moonloop.watch, Thing, function() end)
    hostile.throw_one(function(value) return moonloop.watch(Thing, function() end, { value, value }) end)
  end,
}
