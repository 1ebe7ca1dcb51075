--- Time zones: "UTC", "+02:00", and names like "Europe/Berlin", as far as the machine's database has them.
local zone = require "moonloop.zone"
local zones = require "cluster.zones"

local M = {}


local function atoi(text)
  return text:find "^[-+]?%d+$" and math.tointeger(tonumber(text)) or nil
end


--- Seconds east of UTC.
--- @param name string
--- @param seconds integer the instant
--- @return integer|nil offset
--- @return string? message
function M.offset(name, seconds)
  local hours, minutes = name:match "^([^:]*):(.*)$"
  if hours then
    local hour, minute = atoi(hours), atoi(minutes)
    if not hour or not minute then
      return nil, ('strconv.Atoi: parsing "%s": invalid syntax'):format(hour and minutes or hours)
    end
    return (hour * 60 + (hours:find "^%-" and -minute or minute)) * 60
  elseif name == "" or name == "UTC" then
    return 0
  end
  local found = zones.find(name)
  if not found then
    return nil, "unknown time zone " .. name
  end
  return (zone.at(found, seconds))
end


return M
