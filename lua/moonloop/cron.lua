--- Cron expressions: "*/5 9-17 * * mon-fri", "@hourly", "@every 90s". moonloop.time has them for scripts,
--- cluster/apiserver/schedule/cron.lua for CronJobs.
---
--- Rules and wordings: github.com/robfig/cron/v3 (ParseStandard), which Kubernetes reads them with.
local calendar = require "moonloop.calendar"

local M = {}

local DAY = calendar.DAY
local MONTHS = { jan = 1, feb = 2, mar = 3, apr = 4, may = 5, jun = 6, jul = 7, aug = 8, sep = 9, oct = 10, nov = 11,
  dec = 12 }
local DAYS = { sun = 0, mon = 1, tue = 2, wed = 3, thu = 4, fri = 5, sat = 6 }
local FIELDS = {
  { name = "minute", min = 0, max = 59 }, { name = "hour", min = 0, max = 23 }, { name = "day", min = 1, max = 31 },
  { name = "month", min = 1, max = 12, names = MONTHS }, { name = "weekday", min = 0, max = 6, names = DAYS },
}
local WEEKDAY_TO_SEVEN = { name = "weekday", min = 0, max = 6, most = 7, names = DAYS }
local DESCRIPTORS = {
  ["@yearly"] = "0 0 1 1 *", ["@annually"] = "0 0 1 1 *", ["@monthly"] = "0 0 1 * *", ["@weekly"] = "0 0 * * 0",
  ["@daily"] = "0 0 * * *", ["@midnight"] = "0 0 * * *", ["@hourly"] = "0 * * * *",
}
local UNITS = { ns = 1e-9, us = 1e-6, ["µs"] = 1e-6, ms = 1e-3, s = 1, m = 60, h = 3600 }


local function split(text, separator)
  local list = {}
  for part in (text .. separator):gmatch("([^" .. separator .. "]*)" .. separator) do list[#list + 1] = part end
  return list
end


-- @return integer|nil number; nil and why it is none
local function read_number(text, names)
  local named = names and names[text:lower()]
  if named then
    return named
  elseif not text:find("^[-+]?%d+$") then
    return nil, ('failed to parse int from %s: strconv.Atoi: parsing "%s": invalid syntax'):format(text, text)
  end
  local number = math.tointeger(tonumber(text))
  if not number then
    return nil, ('failed to parse int from %s: strconv.Atoi: parsing "%s": value out of range'):format(text, text)
  elseif number < 0 then
    return nil, ("negative number (%d) not allowed: %s"):format(number, text)
  end
  return number
end


-- The bounds in the text before a slash. @return table|nil { first, last, star }; nil and why it is none
local function read_bounds(text, expression, field)
  local ends = split(text, "-")
  if ends[1] == "*" or ends[1] == "?" then
    return { field.min, field.max, true, #ends == 1 }
  end
  local first, why = read_number(ends[1], field.names)
  if not first then
    return nil, why
  elseif #ends > 2 then
    return nil, "too many hyphens: " .. expression
  end
  local last = first
  if ends[2] then
    last, why = read_number(ends[2], field.names)
    if not last then
      return nil, why
    end
  end
  return { first, last, false, #ends == 1 }
end


local function check_range(first, last, step, expression, field)
  if first < field.min then
    return ("beginning of range (%d) below minimum (%d): %s"):format(first, field.min, expression)
  elseif last > (field.most or field.max) then
    return ("end of range (%d) above maximum (%d): %s"):format(last, field.most or field.max, expression)
  elseif first > last then
    return ("beginning of range (%d) beyond end of range (%d): %s"):format(first, last, expression)
  elseif step == 0 then
    return "step of range should be a positive number: " .. expression
  end
end


-- Adds the values of an expression to `set`. @return string|nil why it is none
local function read_range(expression, field, set)
  local parts = split(expression, "/")
  local bounds, why = read_bounds(parts[1], expression, field)
  if not bounds then
    return why
  elseif #parts > 2 then
    return "too many slashes: " .. expression
  end
  local first, last, star, is_single = table.unpack(bounds)
  local step = 1
  if parts[2] then
    step, why = read_number(parts[2])
    if not step then
      return why
    end
    last = is_single and field.max or last
    star = star and step <= 1
  end
  why = check_range(first, last, step, expression, field)
  for value = first, why and first - 1 or last, step > 0 and step or 1 do
    set[value] = true
  end
  set.star = set.star or star
  return why
end


-- @return table|nil set of values; nil and why it is none
local function read_field(text, field)
  local set = {}
  for expression in text:gmatch("[^,]+") do
    local why = read_range(expression, field, set)
    if why then
      return nil, why
    end
  end
  return set
end


-- A duration as Go has it ("1h30m"), in seconds. @return number|nil; nil and why it is none
local function read_duration(text)
  local rest, total = text:gsub("^[-+]", ""), 0
  if rest == "0" then
    return 0
  elseif rest == "" then
    return nil, ('time: invalid duration "%s"'):format(text)
  end
  while rest ~= "" do
    local number, unit, left = rest:match("^(%d*%.?%d*)([^%d.]*)(.*)$")
    if number == "" or number == "." then
      return nil, ('time: invalid duration "%s"'):format(text)
    elseif unit == "" then
      return nil, ('time: missing unit in duration "%s"'):format(text)
    elseif not UNITS[unit] then
      return nil, ('time: unknown unit "%s" in duration "%s"'):format(unit, text)
    end
    total, rest = total + tonumber(number) * UNITS[unit], left
  end
  return text:sub(1, 1) == "-" and -total or total
end


local function read_descriptor(text)
  local duration = text:match("^@every (.*)$")
  if not duration then
    return nil, "unrecognized descriptor: " .. text
  end
  local seconds, why = read_duration(duration)
  if not seconds then
    return nil, ("failed to parse duration %s: %s"):format(text, why)
  end
  return { every = math.max(math.floor(seconds), 1) }
end


--- Reads an expression, without a zone.
---@param text string
---@param seven? boolean 7 is Sunday, as 0 is; Kubernetes refuses it
---@return table? schedule for M.next
---@return string? why it is none
---@return string? field that is wrong: "minute", "hour", "day", "month" or "weekday"; nil when it is the whole
function M.parse(text, seven)
  if text == "" then
    return nil, "empty spec string"
  elseif text:sub(1, 1) == "@" and not DESCRIPTORS[text] then
    return read_descriptor(text)
  end
  local schedule, words = {}, {}
  for word in (DESCRIPTORS[text] or text):gmatch("%S+") do
    words[#words + 1] = word
  end
  if #words ~= #FIELDS then
    return nil, ("expected exactly %d fields, found %d: [%s]"):format(#FIELDS, #words, table.concat(words, " "))
  end
  for i, field in ipairs(FIELDS) do
    local set, why = read_field(words[i], seven and field.name == "weekday" and WEEKDAY_TO_SEVEN or field)
    if not set then
      return nil, why, field.name
    end
    schedule[field.name] = set
  end
  schedule.weekday[0] = schedule.weekday[0] or schedule.weekday[7]
  return schedule
end


-- A day counts if both its fields fit, or, when both are given, if one of them does.
local function is_day(schedule, date, weekday)
  local by_month, by_week = schedule.day[date], schedule.weekday[weekday]
  if schedule.day.star or schedule.weekday.star then
    return by_month and by_week
  end
  return by_month or by_week
end


-- Instants as the clocks of a zone show them, as Go's package time has it. `offset` nil: UTC.
local Clock = {}
Clock.__index = Clock


-- The time that the clocks show at an instant, as seconds since 1970.
function Clock:local_seconds(instant)
  return instant + (self.offset and self.offset(instant) or 0)
end


function Clock:date(instant)
  return calendar.date_of(self:local_seconds(instant) // DAY)
end


function Clock:hour(instant)
  return self:local_seconds(instant) % DAY // 3600
end


function Clock:minute(instant)
  return self:local_seconds(instant) % 3600 // 60
end


-- Returns the instant at which the clocks show this day and time, as Go's time.Date does: one of the two if the time
-- comes twice; if the clocks leave it out, an instant close to their change.
function Clock:instant(day, seconds)
  local local_seconds = day * DAY + seconds
  if not self.offset then
    return local_seconds
  end
  return local_seconds - self.offset(local_seconds - self.offset(local_seconds))
end


-- Returns where a step begins: the first step at `start`, where the unit begins; later ones at `instant`, as it is.
function Clock:truncate(instant, start)
  if self.stepped then
    return instant
  end
  self.stepped = true
  return start
end


-- Each of these functions returns the first instant, from `instant` on, that fits its field. It returns true as well if
-- the next larger unit began: then all fields have to be checked again.

-- The day of the next month with the same number; behind that month where it has none.
local function next_month(clock, instant)
  local year, month, date = clock:date(instant)
  local day = calendar.day_of(month == 12 and year + 1 or year, month % 12 + 1, 1) + date - 1
  return clock:instant(day, clock:local_seconds(instant) % DAY)
end


-- Where clocks skip midnight of the first of a month, it begins in the last hour of the month before.
local function fit_month(clock, schedule, instant)
  local year, month = clock:date(instant)
  while not schedule.month[month] do
    instant = next_month(clock, clock:truncate(instant, clock:instant(calendar.day_of(year, month, 1), 0)))
    year, month = clock:date(instant)
    if month == 1 then
      return instant, true
    end
  end
  return instant
end


-- Some days begin at 1:00, or their midnight belongs to the day before.
local function next_day(clock, instant)
  local local_seconds = clock:local_seconds(instant)
  local later = clock:instant(local_seconds // DAY + 1, local_seconds % DAY)
  local hour = clock:hour(later)
  later = later + (hour > 12 and 24 - hour or -hour) * 3600
  return later > instant and later or instant + DAY   -- robfig/cron does not return where a zone leaves out a day
end


local function fit_day(clock, schedule, instant)
  local day = clock:local_seconds(instant) // DAY
  local _, _, date = calendar.date_of(day)
  while not is_day(schedule, date, calendar.weekday_of(day)) do
    instant = next_day(clock, clock:truncate(instant, clock:instant(day, 0)))
    day = clock:local_seconds(instant) // DAY
    _, _, date = calendar.date_of(day)
    if date == 1 then
      return instant, true
    end
  end
  return instant
end


local function fit_hour(clock, schedule, instant)
  while not schedule.hour[clock:hour(instant)] do
    local local_seconds = clock:local_seconds(instant)
    instant = clock:truncate(instant, clock:instant(local_seconds // DAY, local_seconds % DAY // 3600 * 3600)) + 3600
    if clock:hour(instant) == 0 then
      return instant, true
    end
  end
  return instant
end


local function fit_minute(clock, schedule, instant)
  while not schedule.minute[clock:minute(instant)] do
    instant = clock:truncate(instant, instant // 60 * 60) + 60
    if clock:minute(instant) == 0 then
      return instant, true
    end
  end
  return instant
end


local function fit_second(clock, _, instant)
  local second = clock:local_seconds(instant) % 60
  if second == 0 then
    return instant
  end
  clock.stepped = true
  return instant + 60 - second, true
end


local FITS = { fit_month, fit_day, fit_hour, fit_minute, fit_second }


--- The next time of a schedule. Steps as robfig/cron does, month by month down to the second: so a time that comes
--- twice, when clocks go back, is two instants, and a time that clocks leave out is none.
---@param schedule table as M.parse returns it
---@param after integer seconds since 1970
---@param offset? fun(instant: integer): integer of the zone that its times are meant in, east of UTC; nil: UTC
---@param years integer how far to look
---@return integer? seconds since 1970; nil when there is none within those years
function M.next(schedule, after, offset, years)
  if schedule.every then
    return after + schedule.every
  end
  local clock, instant, i = setmetatable({ offset = offset }, Clock), after + 1, 1
  local last = clock:date(instant) + years
  while i <= #FITS do
    local again
    instant, again = FITS[i](clock, schedule, instant)
    i = again and 1 or i + 1
    if again and clock:date(instant) > last then
      return nil
    end
  end
  return instant
end


-- ---- the way back ----

-- Returns how long the time that does not fit has been going on at an instant, when its clocks show a whole minute: of
-- its month, day, hour or minute. nil when the schedule names the instant.
local function misfit(schedule, shown)
  local day, rest = shown // DAY, shown % DAY
  local _, month, date = calendar.date_of(day)
  if not schedule.month[month] then
    return (date - 1) * DAY + rest
  elseif not is_day(schedule, date, calendar.weekday_of(day)) then
    return rest
  elseif not schedule.hour[rest // 3600] then
    return rest % 3600
  end
  return not schedule.minute[rest // 60 % 60] and 0 or nil
end


-- The last instant before clocks changed, which they did once between the two.
local function before_change(clock, low, high)
  local function ahead(instant)
    return clock:local_seconds(instant) - instant
  end
  local now = ahead(high)
  while high - low > 1 do
    local middle = (low + high) // 2
    if ahead(middle) == now then
      high = middle
    else
      low = middle
    end
  end
  return low
end


-- Returns the last whole minute before that time began, or before clocks changed meanwhile.
local function before_misfit(clock, instant, since)
  local shown, earlier = clock:local_seconds(instant), instant - since - 60
  if clock:local_seconds(earlier) - earlier ~= shown - instant then
    earlier = before_change(clock, earlier, instant)
  end
  return earlier - clock:local_seconds(earlier) % 60
end


--- The last time of a schedule: the one after which M.next finds none before `before`.
---@param schedule table as M.parse returns it
---@param before integer seconds since 1970
---@param offset? fun(instant: integer): integer as for M.next
---@param years integer how far to look
---@return integer? seconds since 1970; nil when there is none within those years
function M.last(schedule, before, offset, years)
  if schedule.every then
    return before - schedule.every
  end
  local clock, instant = setmetatable({ offset = offset }, Clock), before - 1
  local first = clock:date(instant) - years
  instant = instant - clock:local_seconds(instant) % 60
  local since = misfit(schedule, clock:local_seconds(instant))
  while since do
    instant = before_misfit(clock, instant, since)
    if clock:date(instant) < first then
      return nil
    end
    since = misfit(schedule, clock:local_seconds(instant))
  end
  return instant
end


return M
