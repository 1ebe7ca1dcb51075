--- Methods of timestamps and durations.
---
--- Rules: cel-go common/stdlib/standard.go.
local times = require "cluster.cel.times"

local M = {}

local UNITS = { getHours = 3600000000000, getMinutes = 60000000000, getSeconds = 1000000000, getMilliseconds = 1000000 }
local IDS = {
  getFullYear = "timestamp_to_year", getMonth = "timestamp_to_month", getDayOfYear = "timestamp_to_day_of_year",
  getDayOfMonth = "timestamp_to_day_of_month", getDate = "timestamp_to_day_of_month_1_based",
  getDayOfWeek = "timestamp_to_day_of_week", getHours = "timestamp_to_hours", getMinutes = "timestamp_to_minutes",
  getSeconds = "timestamp_to_seconds", getMilliseconds = "timestamp_to_milliseconds",
}


--- Adds them.
function M.add(functions)
  for name, id in pairs(IDS) do
    local function get(timestamp, zone)
      return times.field(name, timestamp, zone)
    end
    functions:add(name, id, "timestamp.() -> int", get)
    functions:add(name, id .. "_with_tz", "timestamp.(string) -> int", get)
  end
  for name, unit in pairs(UNITS) do
    functions:add(name, "duration_" .. name:lower(), "duration.() -> int", function(duration)
      return times.whole(duration, unit)
    end)
  end
end


return M
