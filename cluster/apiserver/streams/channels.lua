--- The streams of exec, attach and port-forward as channels of a WebSocket: the first byte of a message says which.
---
--- Rules: apimachinery/pkg/util/remotecommand/constants.go, apimachinery/pkg/util/httpstream/wsstream/conn.go,
--- client-go/tools/remotecommand/websocket.go.
local host = require "cluster.host"
local stream = require "cluster.apiserver.streams.stream"
local websocket = require "cluster.apiserver.streams.websocket"

local M = {}
M.__index = M

local CLOSE <const> = 255 -- in v5: the channel in the message that follows says no more

--- How each protocol writes: base64 = as text; closes = a channel can end by itself.
M.PROTOCOLS = {
  ["v5.channel.k8s.io"] = { closes = true },
  ["v4.channel.k8s.io"] = {},
  ["v4.base64.channel.k8s.io"] = { base64 = true },
  ["channel.k8s.io"] = {},
  ["base64.channel.k8s.io"] = { base64 = true },
  [""] = {}, -- the client names none
}


local function send(self, channel, bytes)
  if self.form.base64 then
    self.socket:send(string.char(48 + channel) .. host.base64.encode(bytes), true)
  else
    self.socket:send(string.char(channel) .. bytes)
  end
end


-- @return integer|nil channel, string bytes
local function read(self, message)
  if message == "" then
    return nil
  elseif self.form.base64 then
    local bytes = host.base64.decode(message:sub(2))
    return bytes and message:byte() - 48, bytes
  end
  return message:byte(), message:sub(2)
end


local function take(self, message)
  local channel, bytes = read(self, message)
  if channel == CLOSE and self.form.closes then
    local one = self.streams[bytes:byte()]
    if one then
      one:end_received()
    end
    return
  end
  local one = self.streams[channel]
  if one then -- what is said on others is dropped
    one:received(bytes)
  end
end


--- Opens the WebSocket.
--- @param protocol string of M.PROTOCOLS, that the client has offered  @param handlers table { closed = function() }
--- @return table|nil channels, or nil and why there are none
function M.open(request, reply, protocol, handlers)
  local self = setmetatable({ form = M.PROTOCOLS[protocol], streams = {} }, M)
  local why
  self.socket, why = websocket.open(request, reply, protocol ~= "" and protocol or nil, {
    message = function(bytes)
      take(self, bytes)
    end,
    closed = handlers.closed,
  })
  if not self.socket then
    return nil, why
  end
  self.transport = {
    send = function(one, bytes)
      send(self, one.channel, bytes)
    end,
    finish = function() end, -- a server has no way to say so
    cancel = function() end,
    waiting = function()
      return self.socket:waiting()
    end,
    fail = function(reason)
      self.socket:fail(reason)
    end,
  }
  return self
end


--- A stream on a channel.
function M:add(channel, name)
  local one = stream.new(self.transport, name)
  one.channel = channel
  self.streams[channel] = one
  return one
end


--- An empty message, by which a client knows that all is ready.
function M:greet(channel)
  send(self, channel, "")
end


function M:pause(paused)
  self.socket:pause(paused)
end


--- Ends it, once what was written has been sent.
function M:finish()
  self.socket:finish()
end


return M
