-- attack: ten thousand Events whose reasons and notes all differ.
-- expect: held
-- objects: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing, ctx)
    for i = 1, 200 do
      ctx.event(("R%d%s"):format(i, thing.metadata.name), ("%d %s "):format(i, thing.metadata.name):rep(100))
    end
  end,
}
