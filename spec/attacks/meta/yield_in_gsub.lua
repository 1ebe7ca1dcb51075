-- attack: a call that waits, from inside the function of gsub.
-- expect: error /cannot wait/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    return (("abc"):gsub(".", function() return ctx.get(Map, "precious").metadata.name end))
  end,
}
