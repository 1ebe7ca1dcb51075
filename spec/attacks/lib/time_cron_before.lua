-- attack: time.cron_before gets each value there is, and expressions that are none or never came.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local time = require "moonloop.time"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(time.cron_before)
    hostile.throw_one(time.cron_before, "* * * * *")
    for _, text in ipairs { "", "* * * *", "61 * * * *", "*/0 * * * *", "0 0 30 2 *", "0 0 29 2 *", "0 0 31 4,6,9,11 *", "@", "@every 1e9h", "@every -5m",
      "@every " .. ("9"):rep(200) .. "h", "TZ=Europe/Berlin 0 * * * *", "\0 * * * *", ("9"):rep(1000000) } do
      for _, zone in ipairs { "UTC", "America/New_York", "Australia/Lord_Howe", "No/Where" } do
        for _, before in ipairs { 0, -62135596800, 253402300799, 1.5 } do
          local seconds = time.cron_before(text, before, zone)
          if seconds and (seconds >= before or #time.format(seconds) ~= 20) then error("ESCAPED: " .. text) end
        end
      end
    end
  end,
}
