-- attack: table.concat gets each value there is in each place, and bounds that overflow.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(table.concat)
    hostile.throw(table.concat, { "a", 1, 2.5 })
    hostile.throw_one(function(value) return table.concat({ value, "a", value }, value) end)
    hostile.throw_one(table.concat, { "a" }, "", 1)
  end,
}
