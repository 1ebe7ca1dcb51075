-- attack: time.instant gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local time = require "moonloop.time"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(time.instant)
    hostile.throw_one(time.instant, { year = 2026, month = 1, day = 1 })
    for _, field in ipairs { "year", "month", "day", "hour", "min", "sec", "later", "offset", "nonsense" } do
      hostile.throw_one(function(value)
        return time.instant({ year = 2026, month = 1, day = 1, hour = 0, min = 0, sec = 0, [field] = value }, "Europe/Berlin")
      end)
    end
    local lies = setmetatable({}, { __index = function(_, key) return key == "year" and 9999 or 1 end })
    if not time.instant(lies, "Europe/Berlin") then error "ESCAPED: a field of a metatable was not read" end
  end,
}
