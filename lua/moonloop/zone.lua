--- Time zones as the files of the IANA database (TZif) have them: which offset their clocks have at an instant, and at
--- which instant they show a time. moonloop.zones has those of scripts, cluster/zones.lua those of the cluster.
---
--- Format: RFC 9636, versions 1 to 4. A zone keeps the bytes of its table and searches in them: so it takes 2 to 5 KB.
local calendar = require "moonloop.calendar"
local names = require "moonloop.names"
local zone_rule = require "moonloop.zone_rule"

local M = {}

local DAY = calendar.DAY
local KNOWN_MAX = 32 -- zones that are kept; one more, and all are read again
local HEADER, TYPE = 44, 6 -- bytes
local OFFSET_MIN, OFFSET_MAX = -89999, 93599 -- RFC 9636, 3.2
local VERSIONS = { ["\0"] = 1, ["2"] = 2, ["3"] = 3, ["4"] = 4 }


-- ---- reading a file ----

-- The number with sign of `size` bytes, the largest first.
local function number(bytes, at, size)
  local value = bytes:byte(at) >= 128 and -1 or 0
  for i = at, at + size - 1 do
    value = value << 8 | bytes:byte(i)
  end
  return value
end


-- Returns the block of data whose header stands at `at`: its instants have `size` bytes. nil when it is not all there.
local function find_block(bytes, at, size)
  if bytes:sub(at, at + 3) ~= "TZif" or #bytes < at + HEADER - 1 then
    return nil
  end
  local counts = {}
  for i = 1, 6 do
    counts[i] = number(bytes, at + 16 + i * 4, 4) & 0xffffffff
  end
  local universal, standard, leaps, times, types, chars = table.unpack(counts)
  local first = at + HEADER
  local behind = first + times * (size + 1) + types * TYPE + chars + leaps * (size + 4) + standard + universal
  local is_sound = types >= 1 and types <= 256 and chars >= 1 and (standard == 0 or standard == types)
    and (universal == 0 or universal == types)
  return is_sound and behind <= #bytes + 1 and {
    first = first, behind = behind, size = size, count = times, type_count = types, char_count = chars, leaps = leaps,
  } or nil
end


-- Returns the zone of a block, without its rule.
local function zone_of(bytes, block)
  local size, count = block.size, block.count
  local zone = { size = size, count = count, from = 0, to = 0 }
  zone.kinds, zone.types = 1 + count * size, 1 + count * (size + 1)
  zone.chars = zone.types + block.type_count * TYPE
  zone.bytes = bytes:sub(block.first, block.first + zone.chars + block.char_count - 2)
  return zone
end


local function is_type(zone, index, char_count)
  local at = zone.types + index * TYPE
  local offset = number(zone.bytes, at, 4)
  return offset >= OFFSET_MIN and offset <= OFFSET_MAX and zone.bytes:byte(at + 4) <= 1
    and zone.bytes:byte(at + 5) < char_count
end


-- Are the instants in order, and does each number of the table stand for something?
local function is_sound(zone, block)
  for index = 0, block.type_count - 1 do
    if not is_type(zone, index, block.char_count) then
      return false
    end
  end
  local last
  for index = 0, zone.count - 1 do
    local at = number(zone.bytes, 1 + index * zone.size, zone.size)
    if last and at <= last or zone.bytes:byte(zone.kinds + index) >= block.type_count then
      return false
    end
    last = at
  end
  return zone.bytes:byte(-1) == 0
end


-- Reads the rule behind the table: "\nCET-1CEST,M3.5.0,M10.5.0/3\n". @return boolean is it there?
local function read_footer(zone, bytes, at)
  local text = bytes:match("^\n([^\n]*)\n", at)
  zone.rule = text and text ~= "" and zone_rule.read(text) or nil
  return text == "" or zone.rule ~= nil
end


--- Reads a file.
---@param bytes string
---@return table? zone for M.at and M.instant
---@return string? why it is none
function M.read(bytes)
  local version = VERSIONS[bytes:sub(5, 5)]
  local block = version and find_block(bytes, 1, 4)
  if block and version > 1 then -- the same again, with 64 bits an instant
    block = find_block(bytes, block.behind, 8)
  end
  if not block then
    return nil, "it is no file of time zones (TZif), or not all of one"
  elseif block.leaps > 0 then
    return nil, "it counts leap seconds, which instants of Kubernetes do not have"
  end
  local zone = zone_of(bytes, block)
  if not is_sound(zone, block) or version > 1 and not read_footer(zone, bytes, block.behind) then
    return nil, "its table or its rule is damaged"
  end
  return zone
end


-- ---- times ----

-- How many changes of the table come before an instant, or at it.
local function changes_before(zone, instant)
  local low, high = 0, zone.count
  while low < high do
    local middle = (low + high) // 2
    if number(zone.bytes, 1 + middle * zone.size, zone.size) <= instant then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end


-- The instant of a change of the table, which counts from 1.
local function change_at(zone, index, default)
  return index >= 1 and index <= zone.count and number(zone.bytes, 1 + (index - 1) * zone.size, zone.size) or default
end


-- Notes in the zone how its clocks go at an instant.
local function seek(zone, instant)
  local index = changes_before(zone, instant)
  local last = change_at(zone, index, -math.huge)
  if index == zone.count and zone.rule then
    local from
    zone.offset, zone.name, from, zone.to = zone_rule.at(zone.rule, instant)
    zone.from = math.max(from, last)
    return
  end
  local kind = index > 0 and zone.bytes:byte(zone.kinds + index - 1) or 0
  local at = zone.types + kind * TYPE
  zone.offset = number(zone.bytes, at, 4)
  zone.name = zone.bytes:match("^[^\0]*", zone.chars + zone.bytes:byte(at + 5))
  zone.from, zone.to = last, change_at(zone, index + 1, math.huge)
end


--- Returns how the clocks of a zone go at an instant.
---@param zone table
---@param instant integer
---@return integer offset seconds east of UTC
---@return string name "CEST"
function M.at(zone, instant)
  if instant < zone.from or instant >= zone.to then
    seek(zone, instant)
  end
  return zone.offset, zone.name
end


--- Returns the instant at which the clocks of a zone show a time. A time that comes twice is the first of both; one
--- that the clocks skip is read with the offset before their change (RFC 5545, 3.3.5).
---@param zone table
---@param shown integer the time, as seconds since 1970 if it were in UTC
---@param later? boolean the second of a time that comes twice
---@return integer instant
---@return string? how "repeated" or "skipped"
function M.instant(zone, shown, later)
  local before, after = M.at(zone, shown - DAY), M.at(zone, shown + DAY)
  local first, second = shown - before, shown - after
  local is_first, is_second = M.at(zone, first) == before, M.at(zone, second) == after
  if is_first and is_second and first ~= second then
    return later and second or first, "repeated"
  elseif is_second and not is_first then
    return second
  end
  return first, not is_first and "skipped" or nil
end


-- ---- zones by name ----

local UTC = { from = -math.huge, to = math.huge, offset = 0, name = "UTC" }


local function load(name, read_file)
  local bytes, why = read_file(name)
  if not bytes then
    return nil, why
  end
  local zone, problem = M.read(bytes)
  return zone, problem and ("time zone %s: %s; install tzdata anew"):format(name, problem)
end


--- Returns a function that finds zones by their names, and reads the file of each once. It knows "UTC" without a file.
---@param read_file fun(name: string): string?, string? the bytes of a file; nil when there is none, or when the name is
---     a path out of the folder; and why if that holds for others as well
---@return fun(name: string): table?, string? find a zone, or nil and why
function M.finder(read_file)
  local known, count = { UTC = UTC, ["Etc/UTC"] = UTC }, 0
  return function(name)
    if known[name] then
      return known[name]
    end
    local zone, why = load(name, read_file)
    if not zone then
      return nil, why or ('unknown time zone %s: use a name of the IANA database, such as "Europe/Berlin"')
        :format(names.text(name))
    end
    if count == KNOWN_MAX then
      known, count = { UTC = UTC, ["Etc/UTC"] = UTC }, 0
    end
    known[name], count = zone, count + 1
    return zone
  end
end


return M
