-- attack: time.format gets each value there is in each place, and names of zones that are paths.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local time = require "moonloop.time"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(time.format)
    hostile.throw_one(time.format, 0)
    hostile.throw_one(time.format, 253402300799, "Asia/Tokyo")
  end,
}
