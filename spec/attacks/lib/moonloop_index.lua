-- attack: moonloop.index gets each value there is in each place, while the script loads and afterwards.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

local by = moonloop.index(Thing, function(thing)
  return thing.metadata.name
end)
hostile.throw_one(moonloop.index)

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    hostile.throw(moonloop.index)
    hostile.throw(moonloop.index, Thing)
    hostile.throw_one(function(value) return ctx.list(Thing, { index = value, key = "x" }) end)
    hostile.throw_one(function(value) return ctx.list(Thing, { index = by, key = value }) end)
  end,
}
