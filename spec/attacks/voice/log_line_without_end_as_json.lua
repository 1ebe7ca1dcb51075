-- attack: the same in the other format, where a line that is cut is no JSON.
-- expect: ok
-- log: json
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    ctx.log(("x"):rep(1000000))
    ctx.log("x", { a = ("a"):rep(1000000) })
    ctx.log(("\n\"\\\27"):rep(100000), { a = ("\n\""):rep(100000) })
  end,
}
