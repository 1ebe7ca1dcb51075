-- attack: time.fields gets each value there is in each place, and instants at the ends of the calendar.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local time = require "moonloop.time"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(time.fields)
    hostile.throw_one(time.fields, 0)
    for _, zone in ipairs { "UTC", "Europe/Berlin", "Pacific/Apia", "America/New_York" } do
      for _, seconds in ipairs { -62135596800, -1, 0, 1.5, 4e9, 253402300799 } do
        local fields = time.fields(seconds, zone)
        if fields.month < 1 or fields.month > 12 or fields.hour > 23 then error "ESCAPED" end
      end
    end
  end,
}
