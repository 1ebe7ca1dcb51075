-- attack: ctx.invalid with a megabyte of field, for sixty objects.
-- expect: held
-- objects: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing, ctx)
    return ctx.invalid(thing.metadata.name .. ("f"):rep(1000000), ("w"):rep(500000))
  end,
}
