-- Reconciles the Things with the label shard=1 only.
local moonloop = require "moonloop"

return moonloop.controller {
  name = "labelled",
  reconciles = moonloop.kind("example.com/v1", "Thing", { labels = "shard=1" }),

  reconcile = function(thing)
    return { status = { mode = thing.spec.mode } }
  end,
}
