-- Leaves a ConfigMap for each call, named by the version of the object that it saw. Called for these parts only.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "parts",
  reconciles = Thing,
  when = { "generation", "labels" },
  uses = { ConfigMap },

  reconcile = function(thing, ctx)
    assert(ctx.create {
      apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = ("called-%s-%s"):format(thing.metadata.name, thing.metadata.resourceVersion) },
    })
    return { status = { calls = (thing.status.calls or 0) + 1 } }
  end,
}
