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


-- The numbers of a date's fields; nil and why it is no date and time.
local function read_date(date)
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
  return not why and at or nil, why
end


-- The instant at which clocks in UTC show a date and time.
local function seconds_of(at)
  return calendar.day_of(at.year, at.month, at.day) * DAY + at.hour * 3600 + at.min * 60 + at.sec
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
  local at, why = read_date(date)
  return at and seconds_of(at), why
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


-- ---- time zones ----

-- Returns the zone of that name; nil and why. Raises, at `level`, for what is no name.
local function find_zone(name, call, level)
  if type(name) ~= "string" then
    error(('%s: zone: expected a name like "Europe/Berlin", got %s'):format(call, type(name)), level)
  end
  return require "moonloop.zones".find(name) -- here, as most scripts have no zones
end


-- Returns seconds since 1970 as the clocks of a zone show them, cut to whole ones; the offset; and its name. Raises.
local function shown_at(seconds, name, call)
  if not is_instant(seconds) then
    error(call .. ": expected seconds since 1970 in the years 1 to 9999", 3)
  end
  local instant = math.floor(seconds)
  if name == nil then
    return instant, 0, "UTC"
  end
  local zone, why = find_zone(name, call, 4)
  if not zone then
    error(("%s: %s"):format(call, why), 3)
  end
  local offset, abbreviation = require "moonloop.zone".at(zone, instant)
  return instant + offset, offset, abbreviation
end


--- A time zone, which is its name: what the other functions take.
---@param name string of the IANA database: "Europe/Berlin"
---@return string? zone nil when there is none of that name
---@return string? why
function M.zone(name)
  local zone, why = find_zone(name, "time.zone(name)", 3)
  return zone and name, why
end


--- The fields that the clocks of a zone show at an instant. time.instant has the way back.
---@param seconds number since 1970; a fraction is cut off
---@param zone? string UTC when left out
---@return moonloop.LocalDate
function M.fields(seconds, zone)
  local call = "time.fields(seconds [, zone])"
  local shown, offset, abbreviation = shown_at(seconds, zone, call)
  local year, month, day = calendar.date_of(shown // DAY)
  local rest, again = shown % DAY, nil
  if zone then
    local at = require "moonloop.zone".instant(find_zone(zone, call, 3), shown)
    again = at ~= shown - offset or nil
  end
  return {
    year = year, month = month, day = day, hour = rest // 3600, min = rest // 60 % 60, sec = rest % 60,
    weekday = calendar.weekday_of(shown // DAY), offset = offset, abbreviation = abbreviation, later = again,
  }
end


--- The instant at which the clocks of a zone show a date and time.
---@param date moonloop.LocalDate
---@param zone string
---@return integer? seconds since 1970; nil when there is no such date, or no such zone
---@return string? how "repeated" or "skipped", nil for most; why there is none
function M.instant(date, zone)
  local call = "time.instant({ year =, month =, day =, hour =, min =, sec = }, zone)"
  if type(date) ~= "table" then
    error(call .. ": expected a table", 2)
  end
  local found, why = find_zone(zone, call, 3)
  if not found then
    return nil, why
  end
  local at, problem = read_date(date)
  if not at then
    return nil, problem
  end
  return require "moonloop.zone".instant(found, seconds_of(at), date.later == true)
end


--- The instant in RFC 3339, whole seconds (a fraction is cut off): with Z, or with the offset of a zone.
---@param seconds number since 1970-01-01T00:00:00Z
---@param zone? string UTC when left out
---@return string
function M.format(seconds, zone)
  local shown, offset = shown_at(seconds, zone, "time.format(seconds [, zone])")
  local year, month, day = calendar.date_of(shown // DAY)
  local rest, minutes = shown % DAY, math.abs(offset) // 60
  return ("%04d-%02d-%02dT%02d:%02d:%02d"):format(year, month, day, rest // 3600, rest // 60 % 60, rest % 60)
    .. (offset == 0 and "Z" or ("%s%02d:%02d"):format(offset < 0 and "-" or "+", minutes // 60, minutes % 60))
end


-- ---- durations and schedules ----

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


-- Reads the arguments of time.cron and time.cron_before. @return table|nil schedule; nil and why it is none
-- @return function|nil offset of the zone
local function read_schedule(expression, instant, zone, call)
  if type(expression) ~= "string" then
    error(('%s: expected an expression like "0 3 * * *", got %s'):format(call, type(expression)), 3)
  elseif not is_instant(instant) then
    error(call .. ": expected an instant, seconds since 1970 in the years 1 to 9999", 3)
  elseif #expression > CRON_MAX then
    return nil, ("an expression has at most %d bytes"):format(CRON_MAX)
  elseif expression:find "TZ=" then
    return nil, "TZ=: name the zone behind the instant, as in time.cron(\"0 3 * * *\", after, \"Europe/Berlin\")"
  end
  local schedule, why, field = require "moonloop.cron".parse(expression, true) -- here, as most scripts have none
  if not schedule then
    return nil, field and ("%s: %s"):format(field, why) or why
  elseif zone == nil then
    return schedule
  end
  local found, problem = find_zone(zone, call, 4)
  if not found then
    return nil, problem
  end
  local at = require "moonloop.zone".at
  return schedule, function(seconds) return (at(found, seconds)) end
end


--- The first instant after `after` that a cron expression names: "0 3 * * mon-fri", "@daily".
---@param expression string five fields, or @hourly, @daily, @weekly, @monthly, @yearly, @every 1h30m
---@param after number seconds since 1970
---@param zone? string whose clocks count; UTC when left out
---@return integer? seconds since 1970; nil when the expression is none, or names nothing that ever comes
---@return string? why
function M.cron(expression, after, zone)
  local schedule, offset = read_schedule(expression, after, zone, "time.cron(expression, after [, zone])")
  if not schedule then
    return nil, offset
  end
  local seconds = require "moonloop.cron".next(schedule, math.floor(after), offset, CRON_YEARS)
  if not seconds or not is_instant(seconds) then
    return nil, ("'%s' never comes"):format(expression)
  end
  return seconds
end


--- The last instant before `before` that a cron expression names.
---@param expression string as for M.cron
---@param before number seconds since 1970
---@param zone? string whose clocks count; UTC when left out
---@return integer? seconds since 1970; nil when the expression is none, or names nothing that ever came
---@return string? why
function M.cron_before(expression, before, zone)
  local schedule, offset = read_schedule(expression, before, zone, "time.cron_before(expression, before [, zone])")
  if not schedule then
    return nil, offset
  end
  local seconds = require "moonloop.cron".last(schedule, math.ceil(before), offset, CRON_YEARS)
  if not seconds or not is_instant(seconds) then
    return nil, ("'%s' never came"):format(expression)
  end
  return seconds
end


return M
