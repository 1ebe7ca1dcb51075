-- attack: time.cron gets each value there is, and expressions that are none or never come.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local time = require "moonloop.time"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(time.cron)
    hostile.throw_one(time.cron, "* * * * *")
    for _, text in ipairs { "", " ", "* * * *", "* * * * * *", "61 * * * *", "-1 * * * *", "1-0 * * * *", "*/0 * * * *", "*/99999999999999999999 * * * *", "0 0 30 2 *",
      "0 0 31 4,6,9,11 *", ", , , , ,", "* * * * 8", "@", "@every", "@every ", "@every 1e9h", "@every -5m", "@every " .. ("9"):rep(200) .. "h", "@reboot",
      "TZ=Europe/Berlin 0 * * * *", "CRON_TZ=x 0 0 1 1 *", "\0 * * * *", ("*,"):rep(120) .. "* * * * *", ("9"):rep(1000000) } do
      for _, after in ipairs { 0, -62135596800, 253402300799, 1.5 } do
        local seconds = time.cron(text, after, after == 0 and "Europe/Berlin" or nil)
        if seconds and (seconds <= after or #time.format(seconds) ~= 20) then error("ESCAPED: " .. text) end
      end
    end
  end,
}
