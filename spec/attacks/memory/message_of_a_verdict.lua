-- attack: ctx.terminal with a megabyte of why, for sixty objects.
-- expect: held
-- objects: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing, ctx)
    return ctx.terminal(thing.metadata.name .. ("w"):rep(1000000))
  end,
}
