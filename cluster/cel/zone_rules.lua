--- The rule that a time zone follows after the last change that its file lists: "CET-1CEST,M3.5.0,M10.5.0/3".
---
--- Format: POSIX, "TZ" variable; RFC 8536, 3.3.
local calendar = require "cluster.cel.calendar"

local M = {}

local DAY <const> = 86400
local TWO_O_CLOCK <const> = 7200


-- "-5:30" in seconds. nil when it is none.
local function read_time(text)
  local sign, hours, minutes, seconds = text:match "^([-+]?)(%d+):?(%d*):?(%d*)$"
  if not sign then
    return nil
  end
  local value = math.tointeger(tonumber(hours)) * 3600 + (math.tointeger(tonumber(minutes)) or 0) * 60
    + (math.tointeger(tonumber(seconds)) or 0)
  return sign == "-" and -value or value
end


-- "M3.5.0/3", "J60", "59": what gives the day of a year, from 0, and the second of that day.
local function read_change(text)
  local date, time = text:match "^([^/]*)/?(.*)$"
  local second = time == "" and TWO_O_CLOCK or read_time(time)
  local month, week, week_day = date:match "^M(%d+)%.(%d)%.(%d)$"
  local julian, day = date:match "^J(%d+)$", date:match "^(%d+)$"
  if not second or not (month or julian or day) then
    return nil
  end
  local function number(digits)
    return digits and math.tointeger(tonumber(digits))
  end
  return {
    month = number(month), week = number(week), week_day = number(week_day), julian = number(julian),
    day = number(day), second = second,
  }
end


-- The day since 1970 on which the change is.
local function day_of(change, year)
  local first = calendar.days(year, 1, 1)
  if change.day then
    return first + change.day
  elseif change.julian then -- the 29th of February does not count
    local leap = calendar.days(year, 3, 1) - first == 60
    return first + change.julian - 1 + (leap and change.julian >= 60 and 1 or 0)
  end
  local month_first = calendar.days(year, change.month, 1)
  local day = month_first + (change.week_day - (month_first + 4)) % 7 + (change.week - 1) * 7
  local next_first = change.month == 12 and calendar.days(year + 1, 1, 1) or calendar.days(year, change.month + 1, 1)
  return day >= next_first and day - 7 or day
end


local NAME = "[%a]+"
local QUOTED = "<[%w+-]+>"


local function take_name(text)
  return text:match("^" .. NAME .. "()") or text:match("^" .. QUOTED .. "()")
end


--- Reads a rule.
--- @param text string
--- @return function|nil offset (seconds since 1970) → seconds east of UTC; nil for what is no rule
function M.read(text)
  local stop = take_name(text)
  local standard, rest = (stop and text:sub(stop) or ""):match "^([-+]?[%d:]+)(.*)$"
  local east = standard and -(read_time(standard) or 0)
  if not east then
    return nil
  elseif rest == "" then
    return function()
      return east
    end
  end
  stop = take_name(rest)
  local summer, from, to = (stop and rest:sub(stop) or ""):match "^([-+%d:]*),([^,]+),([^,]+)$"
  local begins, ends = from and read_change(from), to and read_change(to)
  if not begins or not ends then
    return nil
  end
  local summer_east = summer == "" and east + 3600 or -(read_time(summer) or 0)
  return function(seconds)
    local year = calendar.date((seconds + east) // DAY)
    local begin = day_of(begins, year) * DAY + begins.second - east
    local finish = day_of(ends, year) * DAY + ends.second - summer_east
    local is_summer = begin < finish and seconds >= begin and seconds < finish
      or begin > finish and (seconds >= begin or seconds < finish)
    return is_summer and summer_east or east
  end
end


return M
