-- attack: many objects under way at once; each keeps tables that the collector has to go through.
-- expect: held
-- objects: 60
-- for: 800ms
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    local list = {}
    for i = 1, 1500 do list[i] = { i } end
    for _ = 1, 20 do
      ctx.get(Map, "precious")
      for i = 1, 1500 do list[i] = { list[i] and i } end
    end
  end,
}
