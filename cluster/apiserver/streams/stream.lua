--- A stream of bytes in both directions, one of several in an upgraded connection (channels.lua, spdy.lua).
---
---   stream:listen { data = function(bytes), ended = function(), reset = function() }
---                            what the other side says; what has come before is told at once
---   stream:write(bytes)      -> bytes that wait in this process for the client; of all streams of its connection
---   stream:waiting()         -> the same
---   stream:when_drained(fn)  calls fn once the client has read most of it
---   stream:close()           this side says no more
---   stream:reset()           neither side does
local host = require "cluster.host"

local M = {}
M.__index = M

-- Of what comes before anybody listens, on all streams of a connection; then the connection is broken off.
local EARLY_MAX = 1024 * 1024
local EARLY_COST = 128 -- bytes that one piece counts for beside its own

--- Bytes that wait for one side of a connection before the other has to wait, too.
M.WAITING_MAX = 1024 * 1024

local LOOK_FIRST, LOOK_MOST = 0.01, 1 -- seconds until it is seen whether the client has read, then twice that


--- @param transport table of the connection
---   send(stream, bytes), finish(stream), cancel(stream)
---   waiting() -> integer  bytes that wait for the client
---   fail(why)             breaks the connection off
--- @param name string? what it is for  @param headers table? those that it was opened with
function M.new(transport, name, headers)
  transport.early_size = transport.early_size or 0
  return setmetatable({ transport = transport, name = name, headers = headers, early = {}, early_size = 0 }, M)
end


function M:write(bytes)
  if not self.is_closed and bytes ~= "" then
    self.transport.send(self, bytes)
  end
  return self.transport.waiting()
end


function M:waiting()
  return self.transport.waiting()
end


local function poll_until_drained(self, seconds, fn)
  host.after(seconds, function()
    if self.transport.waiting() <= M.WAITING_MAX then
      fn()
    else
      poll_until_drained(self, math.min(seconds * 2, LOOK_MOST), fn)
    end
  end)
end


function M:when_drained(fn)
  poll_until_drained(self, LOOK_FIRST, fn)
end


function M:close()
  if not self.is_closed then
    self.is_closed = true
    self.transport.finish(self)
  end
end


-- Takes what came before anybody listened. @return table list of { what =, bytes = }
local function take_early(self)
  local early = self.early
  self.transport.early_size = self.transport.early_size - self.early_size
  self.early, self.early_size = {}, 0
  return early
end


function M:reset()
  take_early(self)
  if not (self.is_closed and self.has_ended) then
    self.is_closed, self.has_ended = true, true
    self.transport.cancel(self)
  end
end


local function call_handler(self, what, bytes)
  local fn = self.handlers[what]
  if fn then
    fn(bytes)
  end
end


function M:listen(handlers)
  self.handlers = handlers
  for _, one in ipairs(take_early(self)) do
    call_handler(self, one.what, one.bytes)
  end
end


local function hear(self, what, bytes)
  if self.handlers then
    call_handler(self, what, bytes)
    return
  end
  local size = #(bytes or "") + EARLY_COST
  self.early_size, self.transport.early_size = self.early_size + size, self.transport.early_size + size
  if self.transport.early_size > EARLY_MAX then
    self.transport.fail "too much was sent before anybody listened"
    return
  end
  self.early[#self.early + 1] = { what = what, bytes = bytes }
end


--- For the connection: bytes have come.
function M:received(bytes)
  if not self.has_ended and bytes ~= "" then
    hear(self, "data", bytes)
  end
end


--- For the connection: the other side says no more.
function M:end_received()
  if not self.has_ended then
    self.has_ended = true
    hear(self, "ended")
  end
end


--- For the connection: the other side has given the stream up.
function M:reset_received()
  self.is_closed, self.has_ended = true, true
  take_early(self) -- it is given up, too
  hear(self, "reset")
end


return M
