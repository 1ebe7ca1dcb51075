--- The age of an object in the format of tables: "5s", "2m30s", "3h", "4d2h".
---
--- Rules: apimachinery/pkg/util/duration/duration.go (HumanDuration), apimachinery/pkg/api/meta/table/table.go.
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"

local M = {}

local MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


-- "2h", "2h5m": the second unit only when there is something of it.
local function two(seconds, unit, letter, small, small_letter)
  local rest = seconds % unit // small
  return rest == 0 and ("%d%s"):format(seconds // unit, letter)
    or ("%d%s%d%s"):format(seconds // unit, letter, rest, small_letter)
end


--- A duration as people read it, with two or three significant figures. @param seconds number
function M.duration(seconds)
  if seconds <= -2 then
    return "<invalid>"
  end
  seconds = math.max(math.floor(seconds), 0)
  if seconds < 2 * MINUTE then
    return seconds .. "s"
  elseif seconds < 10 * MINUTE then
    return two(seconds, MINUTE, "m", 1, "s")
  elseif seconds < 3 * HOUR then
    return seconds // MINUTE .. "m"
  elseif seconds < 8 * HOUR then
    return two(seconds, HOUR, "h", MINUTE, "m")
  elseif seconds < 2 * DAY then
    return seconds // HOUR .. "h"
  elseif seconds < 8 * DAY then
    return two(seconds, DAY, "d", HOUR, "h")
  elseif seconds < 2 * YEAR then
    return seconds // DAY .. "d"
  elseif seconds < 8 * YEAR then
    return two(seconds, YEAR, "y", DAY, "d")
  end
  return seconds // YEAR .. "y"
end


--- Seconds since 1970 of an instant as objects hold it, or nil when it has none.
function M.instant(text)
  if type(text) ~= "string" or text == "" then
    return nil
  end
  local seconds, micros = instant.read(text)
  return seconds and seconds + micros / 1e6
end


--- How long ago an instant was.
--- @param text string|nil as an object holds it  @param now number seconds since 1970
function M.since(text, now)
  local then_ = M.instant(text)
  return then_ and M.duration(now - then_) or "<unknown>"
end


--- Age of an object.
function M.of(obj, now)
  return M.since(obj.metadata.creationTimestamp, now)
end


--- A cell of a custom column of type "date": null when there is no string, "<invalid>" when it is no instant.
function M.cell(value, now)
  if type(value) ~= "string" then
    return host.json.null
  end
  local then_ = M.instant(value)
  return then_ and M.duration(now - then_) or "<invalid>"
end


return M
