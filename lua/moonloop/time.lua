-- Instants and durations. Reads no clock: the caller passes ctx.now().
local M = {}

local DAY = 86400
local MONTH_DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }
local UNITS = { ms = 0.001, s = 1, m = 60, h = 3600 }
local FIELDS = { "year", "month", "day", "hour", "min", "sec" }

local function days_in_month(year, month)
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return month == 2 and leap and 29 or MONTH_DAYS[month]
end


-- Days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here, so that
-- the leap day is the last day of a year.
local function days_since_epoch(year, month, day)
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  local leaps = year // 4 - year // 100 + year // 400
  return 365 * year + leaps + (153 * (month - 3) + 2) // 5 + day - 719469
end


-- The whole number of `value`, which may be a string of digits from string.match.
local function whole(value)
  if type(value) == "string" and not value:match("^%d+$") then
    return nil
  end
  return math.tointeger(tonumber(value))
end


--- Seconds since 1970-01-01T00:00:00Z of a date and time in UTC. Each field is a whole number or
--- a string of digits; hour, min and sec are 0 when left out.
---@param date moonloop.Date
---@return integer? seconds nil when no such instant exists
---@return string? why
function M.utc(date)
  if type(date) ~= "table" then
    error("time.utc { year =, month =, day =, hour =, min =, sec = }: expected a table", 2)
  end
  local at = {}
  for index, name in ipairs(FIELDS) do
    local value = date[name]
    if value == nil and index > 3 then
      value = 0
    end
    at[name] = value ~= nil and whole(value) or nil
    if not at[name] then
      return nil, ("%s is not a whole number"):format(name)
    end
  end
  local function outside(name, low, high)
    if at[name] < low or at[name] > high then
      return ("%s is %d; it goes from %d to %d"):format(name, at[name], low, high)
    end
  end
  local why = outside("year", 1, 9999)
    or outside("month", 1, 12)
    or outside("day", 1, days_in_month(at.year, at.month))
    or outside("hour", 0, 23)
    or outside("min", 0, 59)
    or outside("sec", 0, 59)
  if why then
    return nil, why
  end
  return days_since_epoch(at.year, at.month, at.day) * DAY + at.hour * 3600 + at.min * 60 + at.sec
end


local function offset_seconds(offset)
  if offset:upper() == "Z" then
    return 0
  end
  local sign, hours, minutes = offset:match("^([+-])(%d%d):(%d%d)$")
  if not sign or tonumber(hours) > 23 or tonumber(minutes) > 59 then
    return nil
  end
  local seconds = math.tointeger(hours) * 3600 + math.tointeger(minutes) * 60
  return sign == "-" and -seconds or seconds
end


--- Seconds since 1970-01-01T00:00:00Z of an RFC 3339 instant, "2006-01-02T15:04:05Z".
---@param text string
---@return number? seconds an integer, or a float when the text has a fraction
---@return string? why
function M.parse(text)
  if type(text) ~= "string" then
    error("time.parse(text): expected a string, got " .. type(text), 2)
  end
  local year, month, day, hour, min, sec, rest =
    text:match("^(%d%d%d%d)%-(%d%d)%-(%d%d)[Tt](%d%d):(%d%d):(%d%d)(.+)$")
  if not year then
    return nil, "expected an instant like 2006-01-02T15:04:05Z"
  end
  local fraction, offset = rest:match("^(%.%d+)(.+)$")
  local shift = offset_seconds(offset or rest)
  if not shift then
    return nil, "expected Z or an offset like +01:00 at the end"
  end
  local seconds, why =
    M.utc { year = year, month = month, day = day, hour = hour, min = min, sec = sec }
  if not seconds then
    return nil, why
  end
  seconds = seconds - shift
  return fraction and seconds + tonumber(fraction) or seconds
end


--- The instant in RFC 3339, in UTC, whole seconds (a fraction is cut off).
---@param seconds number since 1970-01-01T00:00:00Z
---@return string
function M.format(seconds)
  if type(seconds) ~= "number" or seconds ~= seconds or seconds < -62135596800 or seconds >= 253402300800 then
    error("time.format(seconds): expected seconds since 1970 in the years 1 to 9999", 2)
  end
  local whole_seconds = math.floor(seconds)
  local days, rest = whole_seconds // DAY, whole_seconds % DAY
  local year = 1970 + days // 366
  while days_since_epoch(year + 1, 1, 1) <= days do
    year = year + 1
  end
  while days_since_epoch(year, 1, 1) > days do
    year = year - 1
  end
  local day, month = days - days_since_epoch(year, 1, 1) + 1, 1
  while day > days_in_month(year, month) do
    day, month = day - days_in_month(year, month), month + 1
  end
  return ("%04d-%02d-%02dT%02d:%02d:%02dZ"):format(year, month, day, rest // 3600, rest // 60 % 60, rest % 60)
end


--- Seconds of a duration as Go and Kubernetes write it: "5m30s", "1.5h", "250ms".
---@param text string
---@return number? seconds an integer when it is whole
---@return string? why
function M.duration(text)
  if type(text) ~= "string" then
    error("time.duration(text): expected a string, got " .. type(text), 2)
  end
  local total, rest = 0, text
  while rest ~= "" do
    local amount, unit, behind = rest:match("^(%d+%.?%d*)(%a+)(.*)$")
    local scale = UNITS[unit]
    if not scale then
      return nil, "expected a duration like 5m30s, with the units h, m, s, ms"
    end
    total, rest = total + tonumber(amount) * scale, behind
  end
  if text == "" or total > 1e10 then
    return nil, "expected a duration like 5m30s, not empty and below 300 years"
  end
  return math.tointeger(total) or total
end


return M
