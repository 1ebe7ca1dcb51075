-- attack: the colliding keys are in a table that the file fills at its top.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local t = {}
for i = 1, 70000 do t[i * 131071] = i end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return
  end,
}
