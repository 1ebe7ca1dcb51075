-- attack: ctx.apply of an object with thirty thousand fields, changed each time.
-- expect: held
-- touches: 4
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(thing, ctx)
    local data = {}
    for i = 1, 30000 do data["k" .. i] = tostring(thing.spec.n) end
    ctx.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m" }, data = data }
  end,
}
