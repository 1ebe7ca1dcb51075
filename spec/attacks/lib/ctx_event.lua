-- attack: ctx.event gets each value there is in each place.
-- expect: ok
-- objects: 3
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    hostile.throw(ctx.event)
    hostile.throw_one(ctx.event, "Reason")
    hostile.throw_one(ctx.event, "Reason", "note")
    hostile.throw_one(function(value) ctx.event(value, value, value) end)
  end,
}
