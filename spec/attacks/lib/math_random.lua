-- attack: math.random of intervals that are empty, overflow, or take the whole range.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(math.random)
    for _ = 1, 100 do
      math.random(math.mininteger, math.maxinteger)
      math.random(0, math.maxinteger)
      math.random(math.maxinteger, math.maxinteger)
      pcall(math.random, math.maxinteger, math.mininteger)
      pcall(math.random, 0)
      pcall(math.random, 0 / 0)
    end
    if math.randomseed then error "ESCAPED: the seed" end
  end,
}
