--- An answer that goes on, as the messages of a WebSocket: the events of a watch, the bytes of a log.
---
--- The functions here return a reply that takes the place of the request's: start, write, finish, abort, on_close. A
--- client has nothing to say; what it says is dropped.
---
--- Rules: apiserver/pkg/endpoints/handlers/watch.go (HandleWS), streaming/pkg/httpstream/wsstream/{conn,stream}.go,
--- golang.org/x/net/websocket/{server,hybi}.go.
local host = require "cluster.host"
local negotiate = require "cluster.apiserver.streams.negotiate"
local websocket = require "cluster.apiserver.streams.websocket"

local M = {}

local Reply = {}
Reply.__index = Reply

local PIECE = 2048 -- bytes of a message that has no bounds of its own

-- Protocols for bytes: whether they are sent as texts.
local IS_BASE64 = { [""] = false, ["binary.k8s.io"] = false, ["base64.binary.k8s.io"] = true }


-- The handshake has said all that there is to say.
function Reply.start() end


function Reply:write(bytes)
  self.send(self.socket, bytes)
  return self.socket:waiting()
end


function Reply:finish()
  self.socket:finish()
end


function Reply:abort()
  self.socket:abort()
end


-- @param send function(socket, bytes) writes messages
local function open(request, reply, protocol, send)
  local self = setmetatable({ send = send }, Reply)
  local why
  self.socket, why = websocket.open(request, reply, protocol ~= "" and protocol or nil, {
    message = function() end,
    closed = function()
      if self.on_close then
        self.on_close()
      end
    end,
  })
  if not self.socket then
    negotiate.refuse(reply, 400, why)
    return nil
  end
  return self
end


local function send_lines(socket, bytes)
  for line in bytes:gmatch "[^\n]*\n" do
    socket:send(line, true)
  end
end


local function send_binary(socket, bytes)
  for at = 1, #bytes, PIECE do
    socket:send(bytes:sub(at, at + PIECE - 1))
  end
end


local function send_base64(socket, bytes)
  for at = 1, #bytes, PIECE do
    socket:send(host.base64.encode(bytes:sub(at, at + PIECE - 1)), true)
  end
end


--- For lines: each becomes a message. As on a real server the client has to say where it comes from, and may name one
--- protocol, whatever it is.
--- @return table|nil reply nil: the request was refused, and has been answered
function M.lines(request, reply)
  local offered = websocket.offered(request)
  if (request.headers.origin or "") == "" then
    negotiate.refuse(reply, 403, "unable to upgrade: the request needs a header Origin")
    return nil
  elseif #offered > 1 then
    negotiate.refuse(reply, 400, "unable to upgrade: more than one protocol is offered")
    return nil
  end
  return open(request, reply, offered[1], send_lines)
end


--- For bytes, in the first protocol of those offered that is known. They begin with an empty message.
--- @return table|nil reply nil: the request was refused, and has been answered
function M.bytes(request, reply)
  local offered = websocket.offered(request)
  offered[1] = offered[1] or ""
  for _, protocol in ipairs(offered) do
    local is_base64 = IS_BASE64[protocol]
    if is_base64 ~= nil then
      local opened = open(request, reply, protocol, is_base64 and send_base64 or send_binary)
      if opened then
        opened.socket:send("", is_base64)
      end
      return opened
    end
  end
  negotiate.refuse(reply, 403, "unable to upgrade: none of the offered protocols is known")
  return nil
end


return M
