-- attack: a balanced match that is never closed, begun at each place.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("("):rep(300000)
    return text:match "%b()x" and nil
  end,
}
