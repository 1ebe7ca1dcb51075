--- Upgraded connections: the streams of exec, attach and port-forward, by SPDY or by WebSocket; watches and logs by
--- WebSocket.
---
--- Rules and wordings: kubelet/pkg/cri/streaming/{remotecommand,portforward}, apimachinery/pkg/util/httpstream.
local messages = require "cluster.apiserver.streams.messages"
local remote_command = require "cluster.apiserver.streams.remote_command"
local port_forward = require "cluster.apiserver.streams.port_forward"
local websocket = require "cluster.apiserver.streams.websocket"

local M = {}

--- Returns true if a request asks for a WebSocket.
M.is_websocket = websocket.is_asked

--- Opens the streams of a command: remote_command.lua.
M.remote_command = remote_command.open

--- Opens a connection for ports: port_forward.lua.
M.port_forward = port_forward.open

--- The replies of watches and of logs: messages.lua.
M.lines, M.bytes = messages.lines, messages.bytes

return M
