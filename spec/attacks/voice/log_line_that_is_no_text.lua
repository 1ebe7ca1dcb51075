-- attack: a log line of bytes that are no UTF-8.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    ctx.log "\xff\xfe\xc3\x28\xe2\x82\xf0\x9f\xed\xa0\x80"
    ctx.log(("\xc3"):rep(1024))
    ctx.log(("ä"):rep(700))
  end,
}
