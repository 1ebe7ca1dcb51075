-- attack: a controller and a watch are used as kinds, kinds as controllers, each where the other is expected.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local other = moonloop.controller { name = "attack-other", reconciles = Thing, reconcile = function() end }
local watch = moonloop.watch(Thing, function() end)

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    for _, value in ipairs { other, watch, moonloop.null, ctx } do
      pcall(ctx.get, value, "t1")
      pcall(ctx.list, value)
      pcall(ctx.list, Thing, value)
      pcall(ctx.apply, value)
      pcall(ctx.ensure, value)
      pcall(ctx.delete, value)
      pcall(ctx.patch, value, value)
      pcall(moonloop.watch, value, function() end)
      pcall(function() return value.kind end)
      pcall(function() return value .. "x" end)
      pcall(tostring, value)
    end
  end,
}
