-- Instants and durations. Reads no clock: the caller passes ctx.now().
local calendar = require "moonloop.calendar"

local M = {}

local DAY, CRON_MAX, CRON_YEARS = calendar.DAY, 256, 9 -- bytes of an expression; a leap day comes within nine years
local UNITS = { ms = 0.001, s = 1, m = 60, h = 3600 }
local FIELDS = { "year", "month", "day", "hour", "min", "sec" }


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
    or outside("day", 1, calendar.days_in_month(at.year, at.month))
    or outside("hour", 0, 23)
    or outside("min", 0, 59)
    or outside("sec", 0, 59)
  if why then
    return nil, why
  end
  return calendar.day_of(at.year, at.month, at.day) * DAY + at.hour * 3600 + at.min * 60 + at.sec
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


local function is_instant(seconds)
  return type(seconds) == "number" and seconds == seconds and seconds >= -62135596800 and seconds < 253402300800
end


--- The instant in RFC 3339, in UTC, whole seconds (a fraction is cut off).
---@param seconds number since 1970-01-01T00:00:00Z
---@return string
function M.format(seconds)
  if not is_instant(seconds) then
    error("time.format(seconds): expected seconds since 1970 in the years 1 to 9999", 2)
  end
  local whole_seconds = math.floor(seconds)
  local year, month, day = calendar.date_of(whole_seconds // DAY)
  local rest = whole_seconds % DAY
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


--- The first instant after `after` that a cron expression names, in UTC: "0 3 * * mon-fri", "@daily".
---@param expression string five fields, or @hourly, @daily, @weekly, @monthly, @yearly, @every 1h30m
---@param after number seconds since 1970
---@return integer? seconds since 1970; nil when the expression is none, or names nothing that ever comes
---@return string? why
function M.cron(expression, after)
  if type(expression) ~= "string" then
    error("time.cron(expression, after): expected an expression like \"0 3 * * *\", got " .. type(expression), 2)
  elseif not is_instant(after) then
    error("time.cron(expression, after): after: expected seconds since 1970 in the years 1 to 9999", 2)
  elseif #expression > CRON_MAX then
    return nil, ("an expression has at most %d bytes"):format(CRON_MAX)
  elseif expression:find "TZ=" then
    return nil, "TZ=: times are in UTC here, without a zone"
  end
  local cron = require "moonloop.cron" -- here, as most scripts have no schedules
  local schedule, why, field = cron.parse(expression, true)
  if not schedule then
    return nil, field and ("%s: %s"):format(field, why) or why
  end
  local seconds = cron.next(schedule, math.floor(after), nil, CRON_YEARS)
  if not seconds or not is_instant(seconds) then
    return nil, ("'%s' never comes"):format(expression)
  end
  return seconds
end


return M
