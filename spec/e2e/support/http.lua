-- One HTTP request, over TCP, over TLS, or over the Unix socket that kubectl proxy listens on.
local http = require "socket.http"
local ltn12 = require "ltn12"
local socket = require "socket"
local unix = require "socket.unix"

local M = {}

local TIMEOUT = 30

-- Returns the `create` function for socket.http, which connects by `connect(host, port) -> stream`.
local function connector(connect)
  return function()
    local stream
    return {
      connect = function(_, host, port)
        stream = connect(host, port)
        return 1
      end,
      settimeout = function()
        return 1
      end,
      send = function(_, ...)
        return stream:send(...)
      end,
      receive = function(_, ...)
        return stream:receive(...)
      end,
      close = function()
        return stream:close()
      end,
    }
  end
end


-- The host and port of the URL go nowhere.
local function unix_socket(path)
  return connector(function()
    local stream = assert((unix.stream or unix)())
    stream:settimeout(TIMEOUT)
    assert(stream:connect(path))
    return stream
  end)
end


--- A TLS connection to a server whose authority is in the file `ca`, as a socket of luasec. Raises.
function M.connect_tls(host, port, ca)
  local stream = assert(socket.connect(host, port))
  stream:settimeout(TIMEOUT)
  stream = assert(require("ssl").wrap(stream, { mode = "client", protocol = "any", verify = "peer", cafile = ca }))
  stream:settimeout(TIMEOUT)
  assert(stream:dohandshake())
  return stream
end


local function tls(ca)
  return connector(function(host, port)
    return M.connect_tls(host, port, ca)
  end)
end


local function create(request)
  if request.socket then
    return unix_socket(request.socket)
  end
  return request.ca and tls(request.ca) or socket.tcp
end


--- Returns the answer's body, status code and headers, or nil and why.
---@param request { method?: string, url: string, body?: string, type?: string, headers?: table, socket?: string,
---  ca?: string } ca: a file with the authority of a server that speaks TLS
---@return string? body
---@return integer|string code
---@return table<string, string>? headers
function M.request(request)
  local pieces = {}
  local headers = { ["connection"] = "close" }
  for name, value in pairs(request.headers or {}) do
    headers[name] = value
  end
  if request.body then
    headers["content-length"] = #request.body
    headers["content-type"] = request.type or "application/json"
  end
  http.TIMEOUT = TIMEOUT
  local ok, code, answered = http.request {
    method = request.method or "GET",
    url = request.url:gsub("^https:", "http:"), -- or socket.http would bring a TLS of its own
    headers = headers,
    source = request.body and ltn12.source.string(request.body),
    sink = ltn12.sink.table(pieces),
    redirect = false,
    create = create(request),
  }
  if not ok then
    return nil, code
  end
  return table.concat(pieces), code, answered
end


return M
