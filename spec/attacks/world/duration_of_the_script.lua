-- attack: time.duration is replaced in the library that result.check shares with scripts, and gives a NaN.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local time = require "moonloop.time"
time.duration = function() return 0 / 0 end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { requeue_after = "5s" }
  end,
}
