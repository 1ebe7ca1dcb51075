-- attack: ctx.invalid and ctx.terminal get each value there is.
-- expect: held
-- objects: 30
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    hostile.throw_one(ctx.terminal)
    hostile.throw_one(ctx.invalid)
    hostile.throw_one(ctx.invalid, "spec.x")
    return ctx.invalid("", "")
  end,
}
