-- attack: one label of a megabyte in a filter.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    ctx.list(Map, { labels = { [("k"):rep(500000)] = ("v"):rep(500000) } })
  end,
}
