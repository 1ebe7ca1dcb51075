-- attack: names of a megabyte for get, and in objects.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    local name = ("n"):rep(1000000)
    pcall(ctx.ensure, { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name } })
    ctx.get(Map, name)
  end,
}
