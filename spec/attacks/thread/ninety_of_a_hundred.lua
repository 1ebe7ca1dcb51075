-- attack: an object that uses nearly all of its time and succeeds, again and again.
-- expect: held
-- objects: 4
-- for: 1500ms
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    local start = ctx.now()
    while ctx.now() - start < 0.08 do
      for _ = 1, 1000 do end
    end
    return { requeue_after = 0 }
  end,
}
