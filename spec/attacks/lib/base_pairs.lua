-- attack: pairs gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local real = pairs
    hostile.throw(real)
    hostile.throw_one(function(value)
      local n = 0
      for _ in pairs(value) do
        n = n + 1
        if n > 50 then break end
      end
    end)
  end,
}
