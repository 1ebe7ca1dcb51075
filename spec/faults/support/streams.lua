--- Disturbs watches, as a server whose watch cache lags does, or the network: lines wait, are left out, come twice. It
--- is the fault of a stage, for all watches of the operator:
---
---   local streams = require("spec.faults.support.streams").new()
---   local outcome = stage.open(scenario, streams.fault)
---   streams:shut()    -- from now on lines wait, events and bookmarks
---   streams:open()    -- the lines that waited are sent
---   streams.held      -- how many lines had to wait so far
---   streams:lose()    -- the lines that waited are lost: connections are cut, and the next watch of each is told 410
---
--- `streams.on_line(relay, line, revision)`, if it is set, decides about each line: it sends it by relay:send(line).
local M = {}
M.__index = M

local EXPIRED = '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
  .. '"message":"too old resource version","reason":"Expired","code":410}}\n'

-- The reply of one watch.
local Relay = {}
Relay.__index = Relay

function Relay:start(...)
  self.reply:start(...)
end

function Relay:send(line)
  return self.is_closed and 0 or self.reply:write(line)
end

function Relay:write(chunk)
  local waiting = 0
  for line in chunk:gmatch "[^\n]*\n" do
    waiting = self.streams:line(self, line) or waiting
  end
  return waiting
end

function Relay:close(how)
  if not self.is_closed then
    self.is_closed = true
    self.streams.relays[self] = nil
    self.reply[how](self.reply)
  end
end

function Relay:finish()
  self:close "finish"
end

function Relay:abort()
  self:close "abort"
end


--- All watches of an operator.
function M.new()
  local self = setmetatable({ relays = {}, is_shut = false, gone = {}, held = 0, on_line = nil }, M)
  function self.fault(request, reply, pass)
    self:request(request, reply, pass)
  end
  return self
end


--- The revision of a line of a watch, which a bookmark has as well.
function M.revision(line)
  return math.tointeger(line:match '"resourceVersion":"(%d+)"')
end


function M:line(relay, line)
  if self.on_line then
    return self.on_line(relay, line, M.revision(line))
  elseif self.is_shut then
    relay.waiting[#relay.waiting + 1] = line
    self.held = self.held + 1
    return 0
  end
  return relay:send(line)
end


-- A watch that comes too late: what it missed is forgotten.
local function tell_gone(reply)
  reply:start(200, "application/json")
  reply:write(EXPIRED)
  reply:finish()
end


function M:request(request, reply, pass)
  if not request.is_watch then
    return pass(reply)
  elseif self.gone[request.path] then
    self.gone[request.path] = nil
    return tell_gone(reply)
  end
  local relay = setmetatable({ streams = self, reply = reply, path = request.path, waiting = {} }, Relay)
  self.relays[relay] = true
  reply.on_close = function()
    relay.is_closed = true
    self.relays[relay] = nil
    if relay.on_close then
      relay.on_close()
    end
  end
  pass(relay)
end


--- From now on nothing is told.
function M:shut()
  self.is_shut = true
end


-- The relays there are, in an order that is the same each time.
local function each(self)
  local list = {}
  for relay in pairs(self.relays) do
    list[#list + 1] = relay
  end
  table.sort(list, function(a, b) return a.path < b.path end)
  return ipairs(list)
end


--- Sends the lines that waited, and from now on each line as it comes.
function M:open()
  self.is_shut = false
  for _, relay in each(self) do
    local waiting = relay.waiting
    relay.waiting = {}
    for _, line in ipairs(waiting) do
      relay:send(line)
    end
  end
end


--- Cuts all connections. Not from inside a write of theirs: host.defer it.
function M:cut()
  for _, relay in each(self) do
    relay:abort()
    if relay.on_close then
      relay.on_close()
    end
  end
end


--- The next watch of each path is told 410, so that its client has to list.
function M:forget()
  for _, relay in each(self) do
    self.gone[relay.path] = true
  end
end


--- Loses the lines that waited.
function M:lose()
  self.is_shut = false
  self:forget()
  self:cut()
end


return M
