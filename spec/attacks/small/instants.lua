-- attack: instants that are none, of years that no calendar has.
-- expect: ok
local time = require "moonloop.time"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _, text in ipairs { "2026-13-45T99:99:99Z", "9999-12-31T23:59:60Z", "-1-01-01T00:00:00Z", "0000-00-00T00:00:00Z", "Z", "",
      "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00." .. ("9"):rep(100000) .. "Z", "2026-01-01T00:00:00\0Z",
      ("9"):rep(1000) .. "-01-01T00:00:00Z" } do
      pcall(time.parse, text)
    end
    for _, seconds in ipairs { 0 / 0, 1 / 0, -1 / 0, 1e300, -1e300, math.maxinteger, math.mininteger, 2 ^ 63, -62135596801 } do
      pcall(time.format, seconds)
    end
    for _, field in ipairs { "year", "month", "day", "hour", "min", "sec" } do
      for _, value in ipairs { 0 / 0, 1 / 0, -1, 1e300, math.maxinteger, math.mininteger, "x", "99999999999999999999", {}, true, 1.5 } do
        local fields = { year = 2026, month = 1, day = 1, hour = 0, min = 0, sec = 0 }
        fields[field] = value
        pcall(time.utc, fields)
      end
    end
  end,
}
