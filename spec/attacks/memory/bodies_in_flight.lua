-- attack: sixty objects each send a body of two megabytes, all at once.
-- expect: held
-- objects: 60
-- for: 1s
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(thing, ctx)
    local data = { a = ("a"):rep(700000), b = ("b"):rep(700000), c = ("c"):rep(700000) }
    ctx.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name }, data = data }
  end,
}
