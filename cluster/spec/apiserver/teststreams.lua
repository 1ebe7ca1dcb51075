--- Clients of upgraded connections, for specs: a reply that can be upgraded, and both protocols from the client's side.
local host = require "cluster.host"
local header_block = require "cluster.apiserver.streams.header_block"

local M = {}

M.KEY = "dGhlIHNhbXBsZSBub25jZQ==" -- of RFC 6455, 1.3
M.MASK = "\x37\xfa\x21\x3d"


local Reply = {}
Reply.__index = Reply


function Reply:send(code, _, body, headers)
  assert(not self.code, "answered twice")
  self.code, self.body, self.headers = code, body, headers
end


function Reply:upgrade(headers)
  assert(not self.code, "answered twice")
  if self.is_rigid then
    return nil, "this connection cannot be upgraded"
  end
  self.code, self.headers = 101, headers
  return true
end


function Reply:write(bytes)
  assert(self.code == 101 and not self.is_over, "written at the wrong time")
  self.sent[#self.sent + 1] = bytes
  return self.held or 0
end


function Reply:pause(paused)
  assert(not self.is_over, "paused at the wrong time")
  self.paused = paused
end


function Reply:finish()
  assert(not self.is_over, "finished twice")
  self.is_over = true
end


function Reply:abort()
  assert(not self.is_over, "cut at the wrong time")
  self.is_over, self.is_cut = true, true
end


--- The client sends bytes: as one piece, or in pieces of a size.
function Reply:receive(bytes, size)
  for at = 1, #bytes, size or #bytes do
    if not self.is_over and self.on_data then
      self.on_data(bytes:sub(at, at + (size or #bytes) - 1))
    end
  end
end


--- The client goes.
function Reply:leave()
  local gone = not self.is_over and self.on_close
  self.is_over = true
  if gone then
    gone()
  end
end


--- Returns the bytes written since the last call.
function Reply:take()
  local bytes = table.concat(self.sent)
  self.sent = {}
  return bytes
end


function M.reply()
  return setmetatable({ sent = {} }, Reply)
end


-- ---- WebSockets ----

--- A request for one, with the protocols that it offers.
function M.websocket_request(protocols, query)
  return { method = "GET", query = query or {}, headers = { connection = "keep-alive, Upgrade", upgrade = "WebSocket",
    ["sec-websocket-version"] = "13", ["sec-websocket-key"] = M.KEY, ["sec-websocket-protocol"] = protocols } }
end


--- A frame of a client. @param first integer the first byte: 0x82 is a whole binary message
function M.frame(first, payload)
  local size = #payload
  local head = size < 126 and string.pack("BB", first, 0x80 | size)
    or size <= 0xffff and string.pack(">BBI2", first, 0xfe, size) or string.pack(">BBI8", first, 0xff, size)
  return head .. M.MASK .. host.stream.mask(payload, M.MASK)
end


--- A message on a channel.
function M.message(channel, bytes)
  return M.frame(0x82, string.char(channel) .. bytes)
end


--- The frames that a server sent: a list of { first =, payload = }.
function M.frames(bytes)
  local list, at = {}, 1
  while at <= #bytes do
    local first, size = bytes:byte(at, at + 1)
    at = at + 2
    if size == 126 then
      size, at = string.unpack(">I2", bytes, at)
    elseif size == 127 then
      size, at = string.unpack(">I8", bytes, at)
    end
    assert(at + size - 1 <= #bytes, "a frame was cut off")
    list[#list + 1] = { first = first, payload = bytes:sub(at, at + size - 1) }
    at = at + size
  end
  return list
end


--- The close code that a server sent last; nil when it sent none.
function M.close_code(bytes)
  local list = M.frames(bytes)
  local last = list[#list]
  return last and last.first == 0x88 and string.unpack(">I2", last.payload) or nil
end


--- The text that a server sent on each channel: channel → text.
function M.by_channel(bytes)
  local texts = {}
  for _, frame in ipairs(M.frames(bytes)) do
    if frame.first == 0x82 then
      local channel = frame.payload:byte()
      texts[channel] = (texts[channel] or "") .. frame.payload:sub(2)
    end
  end
  return texts
end


-- ---- SPDY ----

local Spdy = {}
Spdy.__index = Spdy


--- A request for SPDY, with the protocols that it offers.
function M.spdy_request(protocols)
  return { method = "POST", query = {}, headers = { connection = "Upgrade", upgrade = "SPDY/3.1",
    ["x-stream-protocol-version"] = protocols } }
end


--- The client of a connection.
function M.spdy()
  return setmetatable({ block = header_block.new(), next_id = 1, bytes = "" }, Spdy)
end


function M.control(kind, flags, payload)
  return string.pack(">I2I2I4", 0x8003, kind, flags << 24 | #payload) .. payload
end


--- The frame that opens the next stream. @return string, integer id
function Spdy:open(headers, flags)
  local id = self.next_id
  self.next_id = id + 2
  return M.control(1, flags or 0, string.pack(">I4I4I2", id, 0, 0) .. self.block:pack(headers)), id
end


--- A frame of data; flags 1 is the end.
function M.data(id, bytes, flags)
  return string.pack(">I4I4", id, (flags or 0) << 24 | #bytes) .. bytes
end


--- The frames that a server sent: a list of { kind =, flags =, payload = } and { id =, flags =, payload = }.
function M.spdy_frames(bytes)
  local list, at = {}, 1
  while at <= #bytes do
    local first, second = string.unpack(">I4I4", bytes, at)
    local size = second & 0xffffff
    local is_control = first >> 31 == 1
    assert(at + 7 + size <= #bytes, "a frame was cut off")
    list[#list + 1] = { kind = is_control and first & 0xffff or nil, id = not is_control and first or nil,
      flags = second >> 24, payload = bytes:sub(at + 8, at + 7 + size) }
    at = at + 8 + size
  end
  return list
end


--- Returns the server's bytes on each stream: { [id] = { text =, is_ended = } }; and its control frames, a list.
function M.spdy_said(bytes)
  local said, control = {}, {}
  for _, frame in ipairs(M.spdy_frames(bytes)) do
    if frame.id then
      local one = said[frame.id] or { text = "" }
      said[frame.id] = one
      one.text, one.is_ended = one.text .. frame.payload, one.is_ended or frame.flags & 1 == 1 or nil
    else
      control[#control + 1] = frame
    end
  end
  return said, control
end


return M
