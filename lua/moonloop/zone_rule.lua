--- The rule that a time zone follows after the last change that its file lists: "CET-1CEST,M3.5.0,M10.5.0/3".
---
--- Format: POSIX, "TZ" variable; RFC 9636, 3.3.
local calendar = require "moonloop.calendar"

local M = {}

local DAY = calendar.DAY
local TWO_O_CLOCK, HOURS_OF_OFFSET, HOURS_OF_CHANGE = 7200, 24, 167


-- "-5:30" in seconds. nil when it is none, or has more than `most` hours.
local function read_time(text, most)
  local sign, hours, rest = text:match "^([-+]?)(%d%d?%d?)(.*)$"
  local minutes, seconds = (rest or ""):match "^:(%d%d):?(%d?%d?)$"
  if not sign or tonumber(hours) > most or rest ~= "" and not minutes then
    return nil
  end
  minutes, seconds = tonumber(minutes or 0), tonumber(seconds) or 0
  if minutes > 59 or seconds > 59 then
    return nil
  end
  local value = math.tointeger(tonumber(hours) * 3600 + minutes * 60 + seconds)
  return sign == "-" and -value or value
end


local function number(digits, least, most)
  local value = digits and math.tointeger(tonumber(digits))
  return value and value >= least and value <= most and value or nil
end


-- "M3.5.0/3", "J60", "59": the day of a year, and the second of that day. nil when it is none.
local function read_change(text)
  local date, time = text:match "^([^/]+)/?(.*)$"
  local second = time == "" and TWO_O_CLOCK or time and read_time(time, HOURS_OF_CHANGE)
  if not second then
    return nil
  end
  local month, week, weekday = date:match "^M(%d%d?)%.(%d)%.(%d)$"
  local change = {
    month = number(month, 1, 12), week = number(week, 1, 5), weekday = number(weekday, 0, 6),
    julian = number(date:match "^J(%d%d?%d?)$", 1, 365), day = number(date:match "^%d%d?%d?$", 0, 365), second = second,
  }
  local is_whole = change.month and change.week and change.weekday or change.julian or change.day
  return is_whole and change or nil
end


-- The day since 1970 on which the change is.
local function day_of(change, year)
  local first = calendar.day_of(year, 1, 1)
  if change.day then
    return first + change.day
  elseif change.julian then -- the 29th of February does not count
    local is_leap = calendar.days_in_month(year, 2) == 29
    return first + change.julian - 1 + (is_leap and change.julian >= 60 and 1 or 0)
  end
  local month_first = calendar.day_of(year, change.month, 1)
  local date = (change.weekday - calendar.weekday_of(month_first)) % 7 + (change.week - 1) * 7
  return month_first + (date >= calendar.days_in_month(year, change.month) and date - 7 or date)
end


-- Takes a name of three letters or more, or one like "<+03>", off the beginning of a text.
local function take_name(text)
  local name, rest = text:match "^(%a%a%a+)(.*)$"
  if not name then
    name, rest = text:match "^<([%w+-]+)>(.*)$"
  end
  return name, rest
end


--- Reads a rule.
---@param text string
---@return table? rule for M.at; nil for a text that is no rule
function M.read(text)
  local name, rest = take_name(text)
  local west, behind = (rest or ""):match "^([-+%d:]+)(.*)$"
  local seconds = west and read_time(west, HOURS_OF_OFFSET)
  if not seconds then
    return nil
  end
  local rule = { name = name, offset = -seconds }
  if behind == "" then
    return rule
  end
  rule.summer_name, rest = take_name(behind)
  local summer_west, begins, ends = (rest or ""):match "^([-+%d:]*),([^,]+),([^,]+)$"
  if not summer_west then
    return nil
  end
  local summer = summer_west == "" and seconds - 3600 or read_time(summer_west, HOURS_OF_OFFSET)
  rule.begins, rule.ends = read_change(begins), read_change(ends)
  rule.summer_offset = summer and -summer
  return summer and rule.begins and rule.ends and rule or nil
end


-- The two changes of a year, in their order.
local function changes_of(rule, year)
  local begins = { at = day_of(rule.begins, year) * DAY + rule.begins.second - rule.offset, is_summer = true }
  local ends = { at = day_of(rule.ends, year) * DAY + rule.ends.second - rule.summer_offset, is_summer = false }
  if begins.at < ends.at then
    return begins, ends
  end
  return ends, begins
end


--- Returns how the clocks go at an instant, and since and until when.
---@param rule table of M.read
---@param instant integer
---@return integer offset seconds east of UTC
---@return string name "CEST"
---@return number from the first instant; -math.huge when there is none
---@return number to the first instant after those; math.huge when there is none
function M.at(rule, instant)
  local from, to, is_summer = -math.huge, math.huge, false
  local function meet(change)
    if change.at <= instant then
      from, is_summer = change.at, change.is_summer
    else
      to = math.min(to, change.at)
    end
  end
  local year = rule.begins and calendar.date_of((instant + rule.offset) // DAY)
  for y = year and year - 1 or 1, year and year + 1 or 0 do
    local first, second = changes_of(rule, y)
    meet(first)
    meet(second)
  end
  if is_summer then
    return rule.summer_offset, rule.summer_name, from, to
  end
  return rule.offset, rule.name, from, to
end


return M
