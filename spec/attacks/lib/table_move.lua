-- attack: table.move gets each value there is in each place, and bounds that overflow.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(table.move)
    hostile.throw(table.move, { 1, 2, 3 })
    hostile.throw_one(table.move, { 1, 2, 3 }, 1, 3)
    hostile.throw_one(table.move, { 1, 2, 3 }, 1, 3, 2)
    hostile.throw_one(table.move, { 1, 2, 3 }, math.mininteger, 3)
    hostile.throw_one(table.move, { 1 }, 1, 2, math.maxinteger)
  end,
}
