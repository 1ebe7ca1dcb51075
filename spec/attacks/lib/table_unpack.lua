-- attack: table.unpack gets each value there is in each place, and bounds that overflow.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(table.unpack)
    hostile.throw(table.unpack, { 1, 2, 3 })
    hostile.throw_one(table.unpack, { 1 }, math.mininteger)
    hostile.throw_one(table.unpack, { 1 }, math.maxinteger - 1)
  end,
}
