-- attack: table.insert gets each value there is in each place, and bounds that overflow.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(table.insert)
    hostile.throw(table.insert, { 1, 2, 3 })
  end,
}
