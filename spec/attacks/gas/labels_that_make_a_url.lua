-- attack: a list by request whose labels make a URL of a megabyte.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    local labels = {}
    for i = 1, 20000 do labels["label-number-" .. i] = ("v%d"):format(i) end
    ctx.list(Map, { labels = labels })
  end,
}
