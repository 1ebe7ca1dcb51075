--- Days, hours and seconds of instants, in UTC.
---
--- An instant is seconds since 1970 and nanoseconds; years are 1 to 9999.
local gregorian = require "moonloop.calendar"

local M = {}

M.SECONDS_MIN = -62135596800 -- 0001-01-01T00:00:00Z
M.SECONDS_MAX = 253402300799 -- 9999-12-31T23:59:59Z

local DAY <const> = 86400


--- Days from 1970-01-01 to that day of the Gregorian calendar.
M.days = gregorian.day_of


--- The date of a day. @return integer year, integer month, integer day
M.date = gregorian.date_of


--- Date and time of an instant.
--- @return table { year, month, day, hour, minute, second, year_day, week_day }: year_day from 0, Sunday is 0
function M.fields(seconds)
  local days, rest = seconds // DAY, seconds % DAY
  local year, month, day = M.date(days)
  return {
    year = year, month = month, day = day, hour = rest // 3600, minute = rest % 3600 // 60, second = rest % 60,
    year_day = days - M.days(year, 1, 1), week_day = (days + 4) % 7,
  }
end


local MONTH_DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }


local function month_days(year, month)
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return month == 2 and leap and 29 or MONTH_DAYS[month]
end


local function read_zone(zone)
  if zone == "Z" then
    return 0
  end
  local sign, hours, minutes = zone:match "^([-+])(%d%d):(%d%d)$"
  if not sign or tonumber(hours) > 24 or tonumber(minutes) > 59 then
    return nil
  end
  local offset = math.tointeger(hours) * 3600 + math.tointeger(minutes) * 60
  return sign == "-" and -offset or offset
end


--- Reads RFC 3339.
--- @return integer|nil seconds, integer nanos; nil for what is no instant
function M.read(text)
  local year, month, day, hour, minute, second, rest =
    text:match "^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)(.*)$"
  if not year then
    return nil
  end
  local fraction, zone = rest:match "^[.,](%d+)(.*)$"
  local offset = read_zone(zone or rest)
  year, month, day = math.tointeger(year), math.tointeger(month), math.tointeger(day)
  hour, minute, second = math.tointeger(hour), math.tointeger(minute), math.tointeger(second)
  if not offset or month < 1 or month > 12 or day < 1 or day > month_days(year, month) or hour > 23 or minute > 59
    or second > 59 then
    return nil
  end
  local nanos = math.tointeger(((fraction or "") .. "000000000"):sub(1, 9))
  return M.days(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset, nanos
end


--- RFC 3339 in UTC, with as many digits of the second as there are.
function M.write(seconds, nanos)
  local at = M.fields(seconds)
  local fraction = nanos > 0 and ("." .. ("%09d"):format(nanos):gsub("0+$", "")) or ""
  return ("%04d-%02d-%02dT%02d:%02d:%02d%sZ"):format(at.year, at.month, at.day, at.hour, at.minute, at.second, fraction)
end


return M
