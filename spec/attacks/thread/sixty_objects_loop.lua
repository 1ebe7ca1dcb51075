-- attack: sixty objects that loop, each for all the time that one reconcile may take.
-- expect: limit cpu
-- objects: 60
-- for: 1500ms
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    while true do end
  end,
}
