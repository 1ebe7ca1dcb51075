-- attack: fractions that differ in the bits only that the hash does not look at.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = {}
    for i = 1, 100000 do t[1.5 + i * 2.0 ^ -52] = i end
  end,
}
