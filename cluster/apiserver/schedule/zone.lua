--- Time zones, from the database of the machine (/usr/share/zoneinfo). UTC is known without it.
---
--- Format: RFC 9636.
local M = {}

local FOLDERS = { "/usr/share/zoneinfo/", "/usr/lib/zoneinfo/" }
local UTC = { ["UTC"] = true, [""] = true, ["Etc/UTC"] = true, ["Etc/GMT"] = true, ["GMT"] = true }

local known = {}   -- name → zone, or false


-- How long one block of data is behind its header, whose instants have `size` bytes.
local function block_length(counts, size)
  local _, _, leaps, times, types, chars = table.unpack(counts)
  return times * (size + 1) + types * 6 + chars + leaps * (size + 4) + counts[1] + counts[2]
end


local function read_header(text, at)
  if text:sub(at, at + 3) ~= "TZif" then
    return nil
  end
  return { string.unpack(">I4I4I4I4I4I4", text, at + 20) }
end


-- { times, kinds, offsets } of the content of a file, or nil.
local function parse(text)
  local counts, at = read_header(text, 1), 45
  if not counts then
    return nil
  end
  local size = 4
  if text:byte(5) >= 50 then   -- version 2: the same again, with 64 bits an instant
    at = at + block_length(counts, size)
    counts, size, at = read_header(text, at), 8, at + 44
  end
  if not counts then
    return nil
  end
  local times, kinds, offsets = {}, {}, {}
  for i = 1, counts[4] do
    times[i] = string.unpack(size == 8 and ">i8" or ">i4", text, at + (i - 1) * size)
    kinds[i] = text:byte(at + counts[4] * size + i - 1)
  end
  for i = 1, counts[5] do
    offsets[i - 1] = string.unpack(">i4", text, at + counts[4] * (size + 1) + (i - 1) * 6)
  end
  return { times = times, kinds = kinds, offsets = offsets }
end


local function load(name)
  for _, folder in ipairs(FOLDERS) do
    local file = io.open(folder .. name, "rb")
    local text = file and file:read("a")
    if file then
      file:close()
    end
    local ok, zone = pcall(parse, text or "")
    if ok and zone then
      return zone
    end
  end
  return false
end


--- The zone of that name ("Europe/Berlin"; "" is UTC), or nil when there is none.
function M.find(name)
  if UTC[name] then
    return { times = {}, kinds = {}, offsets = { [0] = 0 } }
  end
  for part in (name .. "/"):gmatch("([^/]*)/") do
    if not part:find("^[%w_+][%w_+-]*$") then
      return nil
    end
  end
  if known[name] == nil then
    known[name] = load(name)
  end
  return known[name] or nil
end


--- How many seconds a zone is before UTC at an instant.
function M.offset(zone, seconds)
  local times, low, high = zone.times, 0, #zone.times
  while low < high do
    local middle = (low + high + 1) // 2
    if times[middle] <= seconds then
      low = middle
    else
      high = middle - 1
    end
  end
  return zone.offsets[low > 0 and zone.kinds[low] or 0] or 0
end


return M
