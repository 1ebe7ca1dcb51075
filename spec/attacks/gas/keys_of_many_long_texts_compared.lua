-- attack: pairs sorts keys that are long texts with one beginning.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t, begin = {}, ("k"):rep(10000)
    for i = 1, 1000 do t[begin .. i] = i end
    for _ = 1, 1000 do
      for _ in pairs(t) do break end
    end
  end,
}
