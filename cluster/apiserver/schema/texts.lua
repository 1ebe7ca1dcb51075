--- Strings that a built-in type parses itself: times, quantities, bytes. Each check returns the error of the type's
--- parser for a string, or nil.
---
--- Rules and wordings: Go's time.Parse and encoding/base64, apimachinery/pkg/api/resource/quantity.go.
local field = require "cluster.apiserver.field"

local M = {}

local SECONDS_LAYOUT = "2006-01-02T15:04:05Z07:00"
local MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"

local USUAL = "^%d%d%d%d%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)Z$"

local NOT_A_QUANTITY = "quantities must match the regular expression "
  .. "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
local NOT_A_SUFFIX = "unable to parse quantity's suffix"

-- The parts of an instant up to its seconds: a pattern, how the layout has it, and the range of a number.
local STEPS = {
  { "^(%d%d%d%d)", "2006" }, { "^%-", "-" }, { "^(%d%d)", "01", "month", 1, 12 }, { "^%-", "-" }, { "^(%d%d)", "02" },
  { "^T", "T" }, { "^(%d%d?)", "15", "hour", 0, 23 }, { "^:", ":" }, { "^(%d%d)", "04", "minute", 0, 59 },
  { "^:", ":" }, { "^(%d%d)", "05", "second", 0, 59 },
}

local DAYS = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }


local function unparsed(text, layout, rest, step)
  return ("parsing time %s as %s: cannot parse %s as %s"):format(
    field.quote(text), field.quote(layout), field.quote(rest), field.quote(step))
end


local function out_of_range(text, what)
  return ("parsing time %s: %s out of range"):format(field.quote(text), what)
end


-- The numbers of the parts, and what stands behind them; or nil and why.
local function read_steps(text, layout)
  local at, numbers = 1, {}
  for _, step in ipairs(STEPS) do
    local first, last, digits = text:find(step[1], at)
    if not first then
      return nil, unparsed(text, layout, text:sub(at), step[2])
    end
    local number = digits and tonumber(digits)
    numbers[#numbers + 1] = number
    if step[3] and (number < step[4] or number > step[5]) then
      return nil, out_of_range(text, step[3])
    end
    at = last + 1
  end
  return numbers, text:sub(at)
end


local function day_exists(year, month, day)
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  local last = month == 2 and not leap and 28 or DAYS[month]
  return day >= 1 and day <= last
end


local function instant(text, layout)
  local numbers, rest = read_steps(text, layout)
  if not numbers then
    return rest
  end
  if layout == MICRO_LAYOUT then
    if not rest:find "^[.,]%d%d%d%d%d%d" then
      return unparsed(text, layout, rest, ".000000")
    end
    rest = rest:sub(8)
  else
    rest = rest:match "^[.,]%d+(.*)$" or rest
  end
  local zone = rest:match "^Z" or rest:match "^[+-]%d%d:%d%d"
  if not zone then
    return unparsed(text, layout, rest, "Z07:00")
  elseif zone ~= "Z" and tonumber(zone:sub(2, 3)) > 24 then
    return out_of_range(text, "time zone offset hour")
  elseif zone ~= "Z" and tonumber(zone:sub(5, 6)) > 60 then
    return out_of_range(text, "time zone offset minute")
  elseif #rest > #zone then
    return ("parsing time %s: extra text: %s"):format(field.quote(text), field.quote(rest:sub(#zone + 1)))
  elseif not day_exists(numbers[1], numbers[2], numbers[3]) then
    return out_of_range(text, "day")
  end
end


--- An instant with whole seconds (metav1.Time).
function M.time(text)
  local month, day, hour, minute, second = text:match(USUAL)
  if month and month >= "01" and month <= "12" and day >= "01" and day <= "28" and hour <= "23" and minute <= "59"
    and second <= "59" then
    return nil
  end
  return instant(text, SECONDS_LAYOUT)
end


--- An instant with microseconds (metav1.MicroTime).
function M.micro_time(text)
  return instant(text, MICRO_LAYOUT)
end


local SUFFIXES = {}
for suffix in ("n u m k M G T P E Ki Mi Gi Ti Pi Ei"):gmatch "%S+" do
  SUFFIXES[suffix] = true
end


--- An amount (resource.Quantity), also for numbers that stand in its place.
function M.quantity(text)
  local number, suffix = text:match "^%s*[+-]?(%d*%.?%d*)(.-)%s*$"
  if suffix == "" and (number ~= "" or text:find "^%s*[+-]%s*$") or SUFFIXES[suffix]
    or suffix:find "^[eE][+-]?%d+$" then
    return nil
  end
  return suffix ~= "" and suffix:find "^[eEinumkKMGTP]*[+-]?%d*$" and NOT_A_SUFFIX or NOT_A_QUANTITY
end


-- Reads what stands behind the first padding. @return integer|nil where it goes wrong
local function read_padding(text, at, count)
  if count < 2 then
    return at
  end
  local rest = at + 1
  if count == 2 then
    rest = text:find("[^\r\n]", rest)
    if not rest then
      return #text
    elseif text:byte(rest) ~= 61 then
      return at
    end
    rest = rest + 1
  end
  rest = text:find("[^\r\n]", rest)
  return rest and rest - 1
end


-- Where bytes in base64 go wrong, counted from 0, or nil: Go's decoder step by step.
local function corrupt_at(text)
  local count = 0
  for at = 1, #text do
    local char = text:sub(at, at)
    if char == "=" then
      return read_padding(text, at - (count < 2 and 1 or 0), count)
    elseif char:find "[%w+/]" then
      count = (count + 1) % 4
    elseif char ~= "\r" and char ~= "\n" then
      return at - 1
    end
  end
  return count > 0 and #text - count or nil
end


--- Bytes in base64.
function M.bytes(text)
  if #text % 4 == 0 and not text:find "[^%w+/]" then
    return nil
  end
  local at = corrupt_at(text)
  return at and ("illegal base64 data at input byte %d"):format(at)
end


return M
