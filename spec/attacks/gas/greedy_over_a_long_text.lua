-- attack: greedy repetitions that each take the whole text.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("a"):rep(100000)
    return text:match ".*.*.*b" and nil
  end,
}
