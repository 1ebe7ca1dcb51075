-- attack: each reconcile of many objects writes as often as it may, and begins anew.
-- expect: held
-- objects: 20
-- for: 800ms
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(thing, ctx)
    for i = 1, 64 do
      ctx.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name },
        data = { n = tostring(ctx.now()) .. i } }
    end
    return { requeue_after = 0 }
  end,
}
