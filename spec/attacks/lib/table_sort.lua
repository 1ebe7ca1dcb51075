-- attack: table.sort gets each value there is in each place, and bounds that overflow.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(table.sort)
    hostile.throw(table.sort, { 3, 1, 2 })
    hostile.throw_one(function(value) table.sort({ value, 1, value, "x", value }) end)
    hostile.throw_one(function(value) table.sort({ 3, 1, 2, 5, 4 }, function() return value end) end)
  end,
}
