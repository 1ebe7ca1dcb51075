-- attack: time.zone gets each value there is, and names that are paths to other files.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local time = require "moonloop.time"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(time.zone)
    for _, name in ipairs { "", ".", "..", "/", "//", "/etc/passwd", "../../../etc/passwd", "Europe/../../../../etc/passwd", "Europe/./Berlin", "Europe//Berlin",
      "Europe/Berlin/", "Europe/Berlin\0", "\0Europe/Berlin", "Europe", "posixrules/..", "zone.tab", "tzdata.zi", "%s%n", ("A/"):rep(32), ("A"):rep(1000000) } do
      local zone, why = time.zone(name)
      if zone or #why > 400 then error("ESCAPED: " .. name) end
    end
    for i = 1, 100 do -- more than are kept
      time.zone(("Etc/GMT%+d"):format(i % 27 - 12))
    end
  end,
}
