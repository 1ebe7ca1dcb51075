-- attack: log lines whose fields have nearly three megabytes.
-- expect: held
-- objects: 10
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    for i = 1, 10 do
      ctx.log("line", { a = ("a"):rep(1000000), b = ("b"):rep(1000000), c = i })
    end
  end,
}
