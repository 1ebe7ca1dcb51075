-- attack: owned objects are made in a namespace that is not the owner's.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(_, ctx)
    for _, call in ipairs { ctx.ensure, ctx.create, ctx.apply } do
      if pcall(call, { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "x", namespace = "others" } }) then
        error "ESCAPED: an owned object elsewhere"
      end
    end
  end,
}
