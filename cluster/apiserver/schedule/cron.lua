--- Schedules of CronJobs: "*/5 9-17 * * mon-fri", "@hourly", "@every 90s", "TZ=Europe/Berlin 0 3 * * *". The
--- expressions are read by moonloop/cron.lua, which scripts have as time.cron; this adds the zones.
---
--- Rules and wordings: github.com/robfig/cron/v3 (ParseStandard), which Kubernetes reads them with.
local cron = require "moonloop.cron"
local zone = require "moonloop.zone"
local zones = require "cluster.zones"

local M = {}

local YEARS = 5


-- Takes the zone off the beginning of a text. @return string|nil rest; nil and why it is none
-- @return table|nil zone
local function take_zone(text)
  if not text:find("^TZ=") and not text:find("^CRON_TZ=") then
    return text
  end
  local name, rest = text:match("^[^=]*=(%S*) (.*)$")
  if not name then
    return nil, "invalid schedule format: runtime error: slice bounds out of range [:-1]"
  end
  local found = zones.find(name == "" and "UTC" or name)
  if not found then
    return nil, ("provided bad location %s: unknown time zone %s"):format(name, name)
  end
  return rest:match("^%s*(.-)%s*$"), found
end


--- Reads a schedule. @return table|nil schedule, for next; nil and why it is none
function M.parse(text)
  local rest, own = take_zone(text)
  if not rest then
    return nil, own
  end
  local schedule, why = cron.parse(rest)
  if not schedule then
    return nil, why
  end
  schedule.zone = own
  return schedule
end


--- The next time of a schedule.
---
--- @param schedule table as M.parse returns it
--- @param after integer seconds since 1970
--- @param where table|nil the zone its times are meant in, as cluster/zones.lua finds it; nil: UTC
--- @return integer|nil seconds since 1970; nil when there is none within five years
function M.next(schedule, after, where)
  where = schedule.zone or where
  return cron.next(schedule, after, where and function(instant) return zone.at(where, instant) end, YEARS)
end


return M
