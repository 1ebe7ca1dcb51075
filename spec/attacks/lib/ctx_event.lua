-- attack: ctx.event gets each value there is in each place.
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
    hostile.throw(ctx.event)
    hostile.throw_one(ctx.event, "Reason")
    hostile.throw_one(ctx.event, "Reason", "note")
    hostile.throw_one(function(value) ctx.event(value, value, value) end)
    for _, field in ipairs { "type", "about", "related" } do
      hostile.throw_one(function(value) ctx.event("Reason", "note", { [field] = value }) end)
    end
    for _, field in ipairs { "apiVersion", "kind", "name", "namespace", "uid", "metadata" } do
      hostile.throw_one(function(value)
        ctx.event("Reason", "note", { about = { apiVersion = "v1", kind = "Pod", name = "a", [field] = value } })
      end)
      hostile.throw_one(function(value)
        ctx.event("Reason", "note", { related = { apiVersion = "v1", kind = "Pod", metadata = { name = "a", [field] = value } } })
      end)
    end
    for _, namespace in ipairs { "../others", "others/events?x=", "..", "%2e%2e", "a\0b", ("x"):rep(300) } do
      if pcall(ctx.event, "Reason", "note", { about = { apiVersion = "v1", kind = "Pod", name = "a", namespace = namespace } }) then
        error "ESCAPED: an Event of a namespace that there cannot be"
      end
    end
  end,
}
