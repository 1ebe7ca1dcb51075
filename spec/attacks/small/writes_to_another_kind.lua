-- attack: the kind of a table is changed after it was read, to one that is not declared.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(_, ctx)
    local map = ctx.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m" } }
    map.kind = "Secret"
    for _, call in ipairs { ctx.apply, ctx.create, ctx.ensure, ctx.delete } do
      if pcall(call, map) then error "ESCAPED: a Secret" end
    end
    if pcall(ctx.patch, map, { data = { a = "b" } }) then error "ESCAPED: a patch of a Secret" end
    map.kind, map.apiVersion = "ConfigMap", "apps/v1"
    if pcall(ctx.apply, map) then error "ESCAPED: another group" end
  end,
}
