-- The API server's audit log: who asked for what, when, and what came of it. The judge of "exactly
-- one pod". Only the servers that run.sh started have one that can be read.
local cjson = require "cjson.safe"

local M = {}

local path = os.getenv "E2E_AUDIT"

--- Is there a log to read?
M.available = path ~= nil and path ~= ""

--- A place in the log: what comes later is what `since` reads.
function M.mark()
  local file = assert(io.open(path, "rb"))
  local size = file:seek("end")
  file:close()
  return size
end


-- Whole lines only: the last one may be half written.
local function lines_after(mark)
  local file = assert(io.open(path, "rb"))
  file:seek("set", mark)
  local text = file:read("a")
  file:close()
  return text:gmatch("([^\n]*)\n")
end


local WRITES = { create = true, update = true, patch = true, delete = true }

local function matches(event, want)
  local object = event.objectRef or {}
  return (not want.ns or object.namespace == want.ns)
    and (not want.resource or object.resource == want.resource and object.subresource == want.subresource)
    and (not want.name or object.name == want.name)
    and (not want.verb or event.verb == want.verb)
    and (not want.writes or WRITES[event.verb])
    and (not want.code or (event.responseStatus or {}).code == want.code)
    and (not want.by_moonloop or (event.userAgent or ""):sub(1, 9) == "moonloop/")
end


--- The requests answered since `mark`, in the order of their answers.
---@param mark integer
---@param want table all of: ns, resource (itself, not what is below it) or that and subresource, name, verb, code,
---  writes = true, by_moonloop = true
function M.since(mark, want)
  local found = {}
  for line in lines_after(mark) do
    local event = (not want.ns or line:find(want.ns, 1, true)) and cjson.decode(line)
    if event and matches(event, want) then
      found[#found + 1] = event
    end
  end
  return found
end


--- The successful creations of pods in a namespace, by whomever, as count by pod name.
---@return table<string, integer> count
---@return integer total
function M.pods_created(mark, ns)
  local count, total = {}, 0
  for _, event in ipairs(M.since(mark, { ns = ns, resource = "pods", verb = "create", code = 201 })) do
    local name = event.objectRef.name
    count[name], total = (count[name] or 0) + 1, total + 1
  end
  return count, total
end


-- Days from 1970-01-01 to a date; years begin in March, so that the leap day is a year's last.
local function days(year, month, day)
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
end


--- Seconds since 1970, with their fraction, of a time as the API server writes it.
function M.seconds(timestamp)
  local y, mo, d, h, mi, s = timestamp:match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)Z$")
  local date = days(math.tointeger(y), math.tointeger(mo), math.tointeger(d))
  return ((date * 24 + h) * 60 + mi) * 60 + tonumber(s)
end


--- When the server received a request.
function M.received(event)
  return M.seconds(event.requestReceivedTimestamp)
end


return M
