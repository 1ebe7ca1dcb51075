-- attack: a reconcile that never ends.
-- expect: limit cpu /attack.lua:9: used more than/
local moonloop = require "moonloop"

return moonloop.controller {
  name = "attack",
  reconciles = moonloop.kind("attacks.test/v1", "Thing"),
  reconcile = function()
    while true do end
  end,
}
