-- attack: a list filtered by twenty thousand labels, from the cache.
-- expect: held
-- objects: 20
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    local labels = {}
    for i = 1, 20000 do labels["label" .. i] = "v" .. i end
    ctx.list(Thing, { labels = labels })
  end,
}
