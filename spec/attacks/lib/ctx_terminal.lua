-- attack: ctx.terminal gets each value there is in each place.
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
    hostile.throw(ctx.terminal)
    hostile.throw(function(...) return ctx.terminal("no", ...) end)
    hostile.throw(function(a, b) return ctx.terminal("no", { status = a, conditions = b }) end)
    hostile.throw(function(a, b) return ctx.terminal("no", { conditions = { Ready = { status = a, reason = b } } }) end)
  end,
}
