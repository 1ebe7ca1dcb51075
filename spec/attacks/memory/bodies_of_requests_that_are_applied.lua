-- attack: the host remembers what was applied; large bodies under ever other names.
-- expect: held
-- objects: 30
-- for: 1s
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(thing, ctx)
    for i = 1, 60 do
      ctx.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name .. "-" .. i },
        data = { a = ("a"):rep(300000) .. i } }
    end
  end,
}
