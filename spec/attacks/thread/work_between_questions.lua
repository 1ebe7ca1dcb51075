-- attack: each question to the server begins a time of its own; nearly all of each is used.
-- expect: held
-- objects: 10
-- for: 1500ms
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    for _ = 1, 50 do
      local start = ctx.now()
      while ctx.now() - start < 0.07 do
        for _ = 1, 1000 do end
      end
      ctx.get(Map, "precious")
    end
  end,
}
