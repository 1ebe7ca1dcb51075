-- attack: time.utc gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local time = require "moonloop.time"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(time.utc)
    for _, field in ipairs { "year", "month", "day", "hour", "min", "sec", "nonsense" } do
      hostile.throw_one(function(value)
        return time.utc { year = 2026, month = 1, day = 1, hour = 0, min = 0, sec = 0, [field] = value }
      end)
    end
  end,
}
