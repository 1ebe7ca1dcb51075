--- The server's side of SPDY/3.1, as client-go and older kubectl speak it: streams that the client opens.
---
--- Rules: the draft of SPDY/3.1; what github.com/moby/spdystream, which the clients use, relies on: frames of flow
--- control are passed over, pings are answered, a client closes with GOAWAY.
local header_block = require "cluster.apiserver.streams.header_block"
local input = require "cluster.apiserver.streams.input"
local stream = require "cluster.apiserver.streams.stream"

local M = {}
M.__index = M

local SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE <const> = 1, 2, 3, 4, 6, 7, 8, 9
local IGNORED = { [SYN_REPLY] = true, [SETTINGS] = true, [WINDOW_UPDATE] = true }
local FIN <const> = 1
local PROTOCOL_ERROR, REFUSED, CANCEL <const> = 1, 3, 5

local STREAMS_MAX = 256 -- open at a time
local CONTROL_MAX, DATA_MAX = 64 * 1024, 1024 * 1024 -- bytes of a frame of a client
local HEAD <const> = 8 -- bytes of a frame before its payload
local PIECE = 64 * 1024 -- bytes of a frame of ours


local function send_control(self, kind, flags, payload)
  self.link:write(string.pack(">I2I2I4", 0x8003, kind, flags << 24 | #payload) .. payload)
end


local function send_data(self, id, flags, bytes)
  self.link:write(string.pack(">I4I4", id, flags << 24 | #bytes) .. bytes)
end


-- Nothing is said any more; what was written is still sent.
local function end_with(self, code)
  if not self.is_over then
    send_control(self, GOAWAY, 0, string.pack(">I4I4", self.last_id, code))
    self.is_over = true
    self.link:finish()
  end
end


-- The connection is lost: each stream is told, and whoever opened it.
local function leave(self)
  if self.has_left then
    return
  end
  self.has_left = true
  self.is_over = true
  local streams = self.streams
  self.streams, self.count = {}, 0
  for _, one in pairs(streams) do
    one:reset_received()
  end
  self.on_close()
end


local function fail(self)
  end_with(self, PROTOCOL_ERROR)
  leave(self)
end


-- Forgets a stream that both sides have ended.
local function drop_if_over(self, id)
  local one = self.streams[id]
  if one and one.is_closed and one.has_ended then
    self.streams[id] = nil
    self.count = self.count - 1
  end
end


-- The functions that the streams need of their connection.
local function transport_of(self)
  return {
    send = function(one, bytes)
      for at = 1, #bytes, PIECE do
        if not self.is_over then
          send_data(self, one.id, 0, bytes:sub(at, at + PIECE - 1))
        end
      end
    end,
    finish = function(one)
      if not self.is_over then
        send_data(self, one.id, FIN, "")
        drop_if_over(self, one.id)
      end
    end,
    cancel = function(one)
      if not self.is_over then
        send_control(self, RST_STREAM, 0, string.pack(">I4I4", one.id, CANCEL))
        drop_if_over(self, one.id)
      end
    end,
    waiting = function()
      return self.is_over and 0 or self.link:waiting()
    end,
    fail = function()
      fail(self)
    end,
  }
end


-- ---- frames of the client ----

local TAKE = {}


TAKE[SYN_STREAM] = function(self, flags, payload)
  if #payload < 10 then
    return fail(self)
  end
  local id = string.unpack(">I4", payload) & 0x7fffffff
  local headers = self.block:unpack(payload:sub(11)) -- also of a stream that is refused: zlib's state is shared
  if not headers or id % 2 == 0 or id <= self.last_id then
    return fail(self)
  end
  self.last_id = id
  if self.count >= STREAMS_MAX then
    return send_control(self, RST_STREAM, 0, string.pack(">I4I4", id, REFUSED))
  end
  local one = stream.new(self.transport, headers.streamtype, headers)
  one.id = id
  self.streams[id] = one
  self.count = self.count + 1
  send_control(self, SYN_REPLY, 0, string.pack(">I4", id) .. self.block:pack {})
  self.on_stream(one)
  if flags & FIN ~= 0 then
    one:end_received()
    drop_if_over(self, id)
  end
end


TAKE[RST_STREAM] = function(self, _, payload)
  local id = #payload >= 4 and string.unpack(">I4", payload) & 0x7fffffff
  local one = self.streams[id]
  if one then
    self.streams[id] = nil
    self.count = self.count - 1
    one:reset_received()
  end
end


TAKE[PING] = function(self, _, payload)
  if #payload == 4 and string.unpack(">I4", payload) % 2 == 1 then -- one of ours is even
    send_control(self, PING, 0, payload)
  end
end


TAKE[GOAWAY] = function(self)
  end_with(self, 0)
  leave(self)
end


TAKE[HEADERS] = function(self, _, payload)
  if #payload < 4 or not self.block:unpack(payload:sub(5)) then
    fail(self)
  end
end


local function take_control(self, first, flags, payload)
  if first >> 16 & 0x7fff ~= 3 then
    return fail(self)
  end
  local take = TAKE[first & 0xffff]
  if take then
    take(self, flags, payload)
  elseif not IGNORED[first & 0xffff] then
    fail(self)
  end
end


-- Data for a stream that is gone is dropped: the client may not know yet.
local function take_data(self, id, flags, payload)
  local one = self.streams[id]
  if not one then
    return
  end
  one:received(payload)
  if flags & FIN ~= 0 and not self.is_over then
    one:end_received()
    drop_if_over(self, id)
  end
end


-- @return boolean whether there was a whole frame
local function take_frame(self)
  local from = self.input
  if from:size() < HEAD then
    from.frame_bytes = HEAD
    return false
  end
  local first, second = string.unpack(">I4I4", from.bytes, from.at)
  local is_control, size = first & 0x80000000 ~= 0, second & 0xffffff
  if size > (is_control and CONTROL_MAX or DATA_MAX) then
    fail(self)
    return false
  end
  from.frame_bytes = HEAD + size
  if from:size() < from.frame_bytes then
    return false
  end
  local payload = from.bytes:sub(from.at + HEAD, from.at + from.frame_bytes - 1)
  from.at = from.at + from.frame_bytes
  if is_control then
    take_control(self, first, second >> 24, payload)
  else
    take_data(self, first, second >> 24, payload)
  end
  return not self.is_over
end


local function feed(self, bytes)
  if not self.is_over and self.input:add(bytes) then
    while take_frame(self) do end
  end
end


--- @param link table what carries its bytes: write(bytes), waiting() -> integer, pause(paused), finish();
---   calls link.on_data(bytes) and, when the client has gone, link.on_close(); this function sets both
--- @param handlers table { stream = function(stream), closed = function() }: a stream has been opened; the client has
---   gone, once
function M.new(link, handlers)
  local self = setmetatable({
    link = link, on_stream = handlers.stream, on_close = handlers.closed, block = header_block.new(),
    streams = {}, count = 0, last_id = 0, input = input.new(HEAD),
  }, M)
  self.transport = transport_of(self)
  function link.on_data(bytes)
    feed(self, bytes)
  end
  function link.on_close()
    leave(self)
  end
  return self
end


--- While paused nothing is heard of any stream.
function M:pause(paused)
  if not self.is_over then
    self.link:pause(paused)
  end
end


--- Ends it, once what was written has been sent.
function M:finish()
  self.has_left = true
  end_with(self, 0)
end


return M
