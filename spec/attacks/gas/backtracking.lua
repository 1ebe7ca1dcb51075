-- attack: nested repetitions that go back over a long text.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("a"):rep(5000)
    return text:match ".-.-.-.-.-.-b" and nil
  end,
}
