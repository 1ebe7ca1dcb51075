-- attack: a log line longer than a line may be, with fields that are longer still.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    ctx.log(("x"):rep(1000000))
    ctx.log("x", { a = ("a"):rep(1000000) })
    ctx.log(("\n"):rep(100000), { a = ("\n"):rep(100000) })
  end,
}
