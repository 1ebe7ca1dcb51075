-- attack: tonumber gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local real = tonumber
    hostile.throw(real)
    hostile.throw_one(tonumber, "zz")
    hostile.throw_one(tonumber, "7fffffffffffffffff")
    for base = -5, 60 do pcall(tonumber, "10", base) end
  end,
}
