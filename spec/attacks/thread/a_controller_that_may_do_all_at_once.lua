-- attack: sixty objects with as many at a time as there may be, all waiting for the server at once.
-- expect: held
-- objects: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  max_concurrent = 10000,
  uses = { Map },
  reconcile = function(_, ctx)
    for i = 1, 100 do ctx.get(Map, "nobody-" .. i) end
  end,
}
