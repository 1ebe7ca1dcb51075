--- The server's side of a WebSocket, RFC 6455: the handshake, messages, pings and the close.
local host = require "cluster.host"
local input = require "cluster.apiserver.streams.input"

local M = {}
M.__index = M

local CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG <const> = 0, 1, 2, 8, 9, 10
local NORMAL, PROTOCOL_ERROR, TOO_LARGE <const> = 1000, 1002, 1009
local CONTROL_MAX = 125

--- Of one message of a client, all its frames together.
M.MESSAGE_MAX = 1024 * 1024


local function has_word(value, wanted)
  for word in (value or ""):gmatch "[^,%s]+" do
    if word:lower() == wanted then
      return true
    end
  end
  return false
end


--- Returns true if a request asks for a WebSocket.
function M.is_asked(request)
  return has_word(request.headers.connection, "upgrade") and has_word(request.headers.upgrade, "websocket")
end


--- The protocols that a request offers, as a list.
function M.offered(request)
  local list = {}
  for word in (request.headers["sec-websocket-protocol"] or ""):gmatch "[^,%s]+" do
    list[#list + 1] = word
  end
  return list
end


local function send_frame(self, opcode, payload)
  local size = #payload
  local head
  if size < 126 then
    head = string.pack(">BB", 0x80 | opcode, size)
  elseif size <= 0xffff then
    head = string.pack(">BBI2", 0x80 | opcode, 126, size)
  else
    head = string.pack(">BBI8", 0x80 | opcode, 127, size)
  end
  return self.reply:write(head .. payload)
end


-- Nothing is heard any more; what was written is still sent.
local function end_with(self, code, why)
  if not self.is_over then
    self.is_over = true
    send_frame(self, CLOSE, string.pack(">I2", code) .. (why or ""))
    self.reply.on_data = nil
    self.reply:finish()
  end
end


-- The other side has ended it, or broken its rules.
local function leave(self, code, why)
  local gone = self.on_close
  if not self.is_over then
    end_with(self, code, why)
    if gone then
      gone()
    end
  end
end


local function take_message(self, payload)
  self.parts, self.size = nil, 0
  self.on_message(payload)
end


local function take_data(self, opcode, is_last, payload)
  if (opcode == CONTINUATION) ~= (self.parts ~= nil) then
    return leave(self, PROTOCOL_ERROR, "frames out of order")
  end
  self.size = self.size + #payload
  if self.size > M.MESSAGE_MAX then
    return leave(self, TOO_LARGE, "a message has at most 1 MiB")
  elseif opcode ~= CONTINUATION and is_last then
    return take_message(self, payload)
  end
  self.parts = self.parts or {}
  if payload ~= "" then -- empty pieces do not add to the size, so they could go on for ever
    self.parts[#self.parts + 1] = payload
  end
  if is_last then
    take_message(self, table.concat(self.parts))
  end
end


local function take_control(self, opcode, is_last, payload)
  if not is_last or #payload > CONTROL_MAX then
    leave(self, PROTOCOL_ERROR, "control frames are whole and short")
  elseif opcode == PING then
    send_frame(self, PONG, payload)
  elseif opcode == CLOSE then
    leave(self, NORMAL)
  elseif opcode ~= PONG then
    leave(self, PROTOCOL_ERROR, "unknown frame")
  end
end


-- The head of the frame at a place: { opcode =, is_last =, is_plain =, is_masked =, size =, at = where the mask is }.
-- @return table|nil nil while it is not whole
local function read_head(bytes, at)
  if #bytes < at + 1 then
    return nil
  end
  local first, second = bytes:byte(at, at + 1)
  local head = { opcode = first & 0x0f, is_last = first & 0x80 ~= 0, is_plain = first & 0x70 == 0,
    is_masked = second & 0x80 ~= 0, size = second & 0x7f, at = at + 2 }
  if head.size >= 126 then
    local width = head.size == 126 and 2 or 8
    if #bytes < at + 1 + width then
      return nil
    end
    head.size, head.at = string.unpack(width == 2 and ">I2" or ">i8", bytes, at + 2)
  end
  return head
end


-- @return boolean whether there was a whole frame
local function take_frame(self)
  local from = self.input
  local head = read_head(from.bytes, from.at)
  if not head then
    return false
  elseif not head.is_plain or not head.is_masked then
    leave(self, PROTOCOL_ERROR, "frames of clients are masked, without extensions")
    return false
  elseif head.size < 0 or head.size > M.MESSAGE_MAX then
    leave(self, TOO_LARGE, "a message has at most 1 MiB")
    return false
  end
  local begin = head.at + 4
  local last = begin + head.size - 1
  from.frame_bytes = last - from.at + 1
  if #from.bytes < last then
    return false
  end
  local payload = host.stream.mask(from.bytes:sub(begin, last), from.bytes:sub(head.at, begin - 1))
  from.at, from.frame_bytes = last + 1, 0
  if head.opcode <= BINARY then
    take_data(self, head.opcode, head.is_last, payload)
  else
    take_control(self, head.opcode, head.is_last, payload)
  end
  return not self.is_over
end


local function feed(self, bytes)
  if self.input:add(bytes) then
    while take_frame(self) do end
  end
end


--- Answers the handshake.
--- @param protocol string? of those that were offered
--- @param handlers table { message = function(bytes), closed = function() }: closed comes once, when the client is gone
--- @return table|nil websocket, or nil and why there is none
function M.open(request, reply, protocol, handlers)
  local key = request.headers["sec-websocket-key"]
  if request.headers["sec-websocket-version"] ~= "13" then
    return nil, "unable to upgrade: websocket version 13 is needed"
  elseif not key or #(host.base64.decode(key) or "") ~= 16 then
    return nil, "unable to upgrade: no valid Sec-WebSocket-Key"
  end
  local ok, why = reply:upgrade {
    Connection = "Upgrade", Upgrade = "websocket", ["Sec-WebSocket-Accept"] = host.stream.accept(key),
    ["Sec-WebSocket-Protocol"] = protocol,
  }
  if not ok then
    return nil, why
  end
  local self = setmetatable({
    reply = reply, on_message = handlers.message, on_close = handlers.closed,
    input = input.new(0), size = 0,
  }, M)
  reply.on_data = function(bytes)
    feed(self, bytes)
  end
  reply.on_close = function()
    self.is_over = true
    self.on_close()
  end
  return self
end


--- Sends one message. @return integer bytes that wait for the client
function M:send(bytes, is_text)
  return self.is_over and 0 or send_frame(self, is_text and TEXT or BINARY, bytes)
end


--- Bytes that wait for the client.
function M:waiting()
  return self.is_over and 0 or self.reply:write ""
end


--- While paused nothing is heard.
function M:pause(paused)
  if not self.is_over then
    self.reply:pause(paused)
  end
end


--- Ends it, once what was written has been sent.
function M:finish()
  self.reply.on_close = nil
  end_with(self, NORMAL)
end


--- Breaks the connection off; what waits for the client is lost.
function M:abort()
  if not self.is_over then
    self.is_over = true
    self.reply.on_close, self.reply.on_data = nil, nil
    self.reply:abort()
  end
end


--- Ends it, as the client has broken a rule.
function M:fail(why)
  leave(self, PROTOCOL_ERROR, why)
end


return M
