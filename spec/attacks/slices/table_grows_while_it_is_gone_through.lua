-- attack: pairs over a table that the body fills, so that it is rehashed again and again.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = { a = 1, b = 2, c = 3 }
    local steps = 0
    for key in pairs(t) do
      steps = steps + 1
      for i = 1, 100 do t[key .. i] = i end
      if steps > 1000 then break end
    end
  end,
}
