--- Timestamps and durations: texts, arithmetic, fields. Each function returns a value, or nil and a message.
---
--- Rules: cel-go common/types/{timestamp,duration,overflow}.go, Go's time.ParseDuration.
local calendar = require "cluster.cel.calendar"
local floats = require "cluster.cel.floats"
local numbers = require "cluster.cel.numbers"
local values = require "cluster.cel.values"
local zones = require "cluster.cel.zones"

local M = {}

local SECOND <const> = 1000000000
local OVERFLOW = "timestamp overflow"
local DURATION_OVERFLOW = "duration overflow"

local UNITS = {
  ns = 1, us = 1000, ["µs"] = 1000, ["μs"] = 1000, ms = 1000000, s = SECOND, m = 60 * SECOND, h = 3600 * SECOND,
}


-- A part of a duration: "1.5h". nil when it does not fit.
local function part_nanos(whole, fraction, unit)
  local count = whole == "" and 0 or math.tointeger(tonumber(whole))
  local nanos = count and numbers.multiply(count, unit)
  if not nanos or fraction == "" then
    return nanos
  end
  local scale = 1.0
  local digits = fraction:sub(1, 18)
  for _ = 1, #digits do
    scale = scale * 10
  end
  return (numbers.add(nanos, math.floor((math.tointeger(tonumber(digits)) or 0) * (unit / scale))))
end


--- Reads "1h30m", "-1.5s". @return integer|nil nanoseconds
function M.read_duration(text)
  local sign, rest = text:match "^([-+]?)(.*)$"
  if rest == "0" then
    return 0
  elseif rest == "" then
    return nil
  end
  local total = 0
  while rest ~= "" do
    local whole, dot, fraction, unit, behind = rest:match "^(%d*)(%.?)(%d*)([^%d.]+)(.*)$"
    if not whole or whole .. fraction == "" or dot == "" and fraction ~= "" or not UNITS[unit] then
      return nil
    end
    local nanos = part_nanos(whole, fraction, UNITS[unit])
    total = nanos and numbers.add(total, nanos)
    if not total then
      return nil
    end
    rest = behind
  end
  return sign == "-" and -total or total
end


--- "5400s"
function M.duration_text(duration)
  local nanos = duration.nanos
  local seconds = math.tointeger((nanos - math.fmod(nanos, SECOND)) // SECOND)
  return floats.plain(seconds + math.fmod(nanos, SECOND) / 1e9) .. "s"
end


--- @param seconds integer
--- @param nanos integer any number of them
function M.timestamp(seconds, nanos)
  seconds = seconds + nanos // SECOND
  if seconds < calendar.SECONDS_MIN or seconds > calendar.SECONDS_MAX then
    return nil, OVERFLOW
  end
  return values.timestamp(seconds, nanos % SECOND)
end


--- Reads RFC 3339. nil without a message when it is none.
function M.read_timestamp(text)
  local seconds, nanos = calendar.read(text)
  if not seconds then
    return nil
  end
  return M.timestamp(seconds, nanos)
end


function M.timestamp_text(timestamp)
  return calendar.write(timestamp.seconds, timestamp.nanos)
end


-- Arithmetic.

local function checked(nanos)
  if not nanos then
    return nil, DURATION_OVERFLOW
  end
  return values.duration(nanos)
end


function M.add_durations(a, b)
  return checked((numbers.add(a.nanos, b.nanos)))
end


function M.subtract_durations(a, b)
  return checked((numbers.subtract(a.nanos, b.nanos)))
end


function M.later(timestamp, duration)
  return M.timestamp(timestamp.seconds + duration.nanos // SECOND, timestamp.nanos + duration.nanos % SECOND)
end


function M.earlier(timestamp, duration)
  return M.timestamp(timestamp.seconds - duration.nanos // SECOND, timestamp.nanos - duration.nanos % SECOND)
end


function M.between(a, b)
  local nanos = numbers.multiply(a.seconds - b.seconds, SECOND)
  return checked(nanos and (numbers.add(nanos, a.nanos - b.nanos)))
end


-- Fields.

--- name of a getter → what it takes of calendar.fields
M.FIELDS = {
  getFullYear = function(at)
    return at.year
  end,
  getMonth = function(at)
    return at.month - 1
  end,
  getDayOfYear = function(at)
    return at.year_day
  end,
  getDayOfMonth = function(at)
    return at.day - 1
  end,
  getDate = function(at)
    return at.day
  end,
  getDayOfWeek = function(at)
    return at.week_day
  end,
  getHours = function(at)
    return at.hour
  end,
  getMinutes = function(at)
    return at.minute
  end,
  getSeconds = function(at)
    return at.second
  end,
  getMilliseconds = function(at)
    return at.nanos // 1000000
  end,
}


--- A field of a timestamp.
--- @param name string of a getter
--- @param timestamp table
--- @param zone string|nil
function M.field(name, timestamp, zone)
  local offset, message = zones.offset(zone or "UTC", timestamp.seconds)
  if not offset then
    return nil, message
  end
  local at = calendar.fields(timestamp.seconds + offset)
  at.nanos = timestamp.nanos
  return M.FIELDS[name](at)
end


--- Whole units in a duration, towards zero.
--- @param duration table
--- @param unit integer nanoseconds
function M.whole(duration, unit)
  return (numbers.divide(duration.nanos, unit))
end


return M
