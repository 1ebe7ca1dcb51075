-- attack: a loop by goto, one by a for of the widest range, one by a for of fractions that never counts on.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _ = math.mininteger, math.maxinteger do
      for x = 1e308, 1e309, 1e-300 do local _ = x end
      ::again::
      goto again
    end
  end,
}
