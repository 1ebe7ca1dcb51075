--- Instants in the server's format: in UTC, with whole seconds or with microseconds.
---
--- Rules: apimachinery/pkg/apis/meta/v1/{time,micro_time}.go.
local calendar = require "moonloop.calendar"
local host = require "cluster.host"

local null = host.json.null

local M = {}

--- Of the years 1 to 9999, in seconds since 1970.
M.FIRST_SECOND, M.LAST_SECOND = -62135596800, 253402300799

-- The zero instant of Go, which says that there is none.
local ZERO = "0001-01-01T00:00:00Z"

local ZERO_MICRO = "0001-01-01T00:00:00.000000Z"

local LENGTH = #ZERO

local PATTERN = "^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)%.?(%d*)(.*)$"


--- Reads RFC 3339. @return integer|nil seconds since 1970, integer microseconds; nil for what is none
function M.read(text)
  local year, month, day, hour, minute, second, fraction, zone = text:match(PATTERN)
  local offset = 0
  if zone and zone ~= "Z" then
    local sign, hours, minutes = zone:match("^([-+])(%d%d):(%d%d)$")
    if not sign then
      return nil
    end
    offset = (hours * 3600 + minutes * 60) * (sign == "-" and -1 or 1)
  elseif not zone then
    return nil
  end
  local days = calendar.day_of(math.tointeger(year), math.tointeger(month), math.tointeger(day))
  local seconds = days * calendar.DAY + hour * 3600 + minute * 60 + second - offset
  return math.tointeger(seconds), math.tointeger((fraction .. "000000"):sub(1, 6))
end


--- Seconds since 1970 as RFC 3339 in UTC: "2026-07-03T10:00:00Z". A number that is too small or too large for that
--- becomes the first or the last instant: it may come from a client.
function M.write(seconds)
  local text = os.date("!%Y-%m-%dT%H:%M:%SZ", math.max(M.FIRST_SECOND, math.min(seconds, M.LAST_SECOND)))
  return ("0"):rep(LENGTH - #text) .. text
end


--- The same with microseconds: "2026-07-03T10:00:00.000000Z".
function M.write_micro(seconds, micros)
  return M.write(seconds):sub(1, -2) .. (".%06dZ"):format(micros)
end


--- A JSON value as metav1.Time writes it; nil for null, and for the first instant, which stands for none. A text that
--- is no instant stays as it is.
function M.seconds(value)
  if value == null or value == ZERO then
    return nil
  elseif #value == LENGTH and value:byte(-1) == 90 then
    return value
  end
  local seconds = M.read(value)
  return seconds and M.write(seconds) or value
end


--- A JSON value as metav1.MicroTime writes it; nil for null, and for the first instant.
function M.micro(value)
  if value == null or value == ZERO_MICRO then
    return nil
  elseif #value == 27 and value:byte(-1) == 90 then
    return value
  end
  local seconds, micros = M.read(value)
  return seconds and M.write_micro(seconds, micros) or value
end


return M
