-- attack: ctx.list gets each value there is in each place.
-- expect: ok
-- objects: 3
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    hostile.throw(ctx.list)
    hostile.throw_one(ctx.list, Thing)
    for _, option in ipairs { "namespace", "labels", "owned", "fields", "index", "key" } do
      hostile.throw_one(function(value) return ctx.list(Thing, { [option] = value }) end)
      hostile.throw_one(function(value) return ctx.list(Thing, { labels = { [value] = value, a = value } }) end)
      hostile.throw_one(function(value) return ctx.list(Map, { fields = { [value] = value, a = value } }) end)
    end
  end,
}
