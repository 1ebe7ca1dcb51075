-- attack: finalize asks to be called again at once, for ever.
-- expect: held
-- objects: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing, ctx)
    if thing.metadata.finalizers then
      ctx.delete(thing)
    end
    return { status = { seen = true } }
  end,
  finalize = function()
    return { requeue_after = 0 }
  end,
}
