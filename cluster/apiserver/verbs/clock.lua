--- Times of objects ("2026-07-03T10:00:00Z") as whole seconds since 1970, and back.
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"

local M = {}

local DAY = 86400


-- Days since 1970 of a date of the Gregorian calendar; years begin with March, so that leap days come last.
local function days_of(year, month, day)
  if month <= 2 then
    year = year - 1
    month = month + 12
  end
  return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
end


--- Seconds of a time as the server writes it; fractions are dropped. nil when it is none.
function M.parse(text)
  local year, month, day, hour, minute, second = text:match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)[.%d]*Z$")
  if not year then
    return nil
  end
  local days = days_of(math.tointeger(tonumber(year)), math.tointeger(tonumber(month)), math.tointeger(tonumber(day)))
  return days * DAY + tonumber(hour) * 3600 + tonumber(minute) * 60 + math.tointeger(tonumber(second))
end


--- The time of so many seconds, as objects have it.
M.format = instant.write


--- Now, in whole seconds.
function M.seconds()
  return math.floor(host.now())
end


return M
