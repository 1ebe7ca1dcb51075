-- attack: fractions that all fall into one place of the hash as soon as it grows.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = {}
    for e = 1, 9 do
      for i = 1, 8000 do t[((1 << 30) + i * 131071 - e) * 2.0 ^ (e - 31)] = i end
    end
  end,
}
