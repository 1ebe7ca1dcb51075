--- Time zones: "UTC", "+02:00", and names like "Europe/Berlin", as far as the machine has /usr/share/zoneinfo.
---
--- Format of the files: RFC 8536. Behind the last change that a file lists, its rule tells (zone_rules.lua).
local rules = require "cluster.cel.zone_rules"

local M = {}

local FOLDER = "/usr/share/zoneinfo/"

local known = {} -- name → { at = instants, offsets }


local function read_file(name)
  local file = not name:find("..", 1, true) and not name:find "^[/\\]" and io.open(FOLDER .. name, "rb")
  local bytes = file and file:read "a"
  if file then
    file:close()
  end
  return bytes and bytes:find "^TZif" and bytes or nil
end


-- Where the second block, of instants with 64 bits, begins.
local function skip_first(bytes)
  local isut, isstd, leap, time, type_count, chars = (">I4I4I4I4I4I4"):unpack(bytes, 21)
  return 45 + time * 5 + type_count * 6 + chars + leap * 8 + isstd + isut
end


local function parse(bytes)
  local start = skip_first(bytes)
  local isut, isstd, leap, count, type_count, chars = (">I4I4I4I4I4I4"):unpack(bytes, start + 20)
  local times = start + 44
  local kinds = times + count * 8
  local offsets = {}
  for i = 0, type_count - 1 do
    offsets[i] = (">i4"):unpack(bytes, kinds + count + i * 6)
  end
  local zone = { at = {}, offsets = {}, first = offsets[0] or 0 }
  for i = 1, count do
    zone.at[i] = (">i8"):unpack(bytes, times + (i - 1) * 8)
    zone.offsets[i] = offsets[bytes:byte(kinds + i - 1)]
  end
  local footer = kinds + count + type_count * 6 + chars + leap * 12 + isstd + isut
  zone.rule = rules.read(bytes:match("^\n([^\n]*)\n", footer) or "")
  return zone
end


local function find(name)
  if known[name] == nil then
    local bytes = read_file(name)
    local ok, zone = pcall(parse, bytes)
    known[name] = bytes and ok and zone or false
  end
  return known[name]
end


local function offset_at(zone, seconds)
  local low, high = 0, #zone.at
  if zone.rule and (high == 0 or seconds >= zone.at[high]) then
    return zone.rule(seconds)
  end
  while low < high do
    local middle = (low + high + 1) // 2
    if zone.at[middle] <= seconds then
      low = middle
    else
      high = middle - 1
    end
  end
  return zone.offsets[low] or zone.first
end


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
  local zone = find(name)
  if not zone then
    return nil, "unknown time zone " .. name
  end
  return offset_at(zone, seconds)
end


return M
