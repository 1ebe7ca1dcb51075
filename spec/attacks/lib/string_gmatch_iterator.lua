-- attack: the iterator of gmatch gets each value there is, and is called after its end.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    local iterate = ("abc"):gmatch "."
    hostile.throw(iterate)
    for _ = 1, 10 do iterate() end
    hostile.throw_one(function(pattern)
      for _ in ("abc"):rep(5):gmatch(pattern) do ctx.now() end
    end)
  end,
}
