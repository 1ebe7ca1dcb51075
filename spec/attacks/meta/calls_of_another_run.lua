-- attack: the ctx of one reconcile is used in another, while the first waits.
-- expect: held
-- objects: 20
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")
local others = {}

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    others[#others + 1] = ctx
    for i = 1, 20 do
      others[i % #others + 1].get(Map, "precious")
      others[i % #others + 1].log "another"
    end
  end,
}
