-- attack: time.parse gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local time = require "moonloop.time"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(time.parse)
  end,
}
