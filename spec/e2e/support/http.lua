-- One HTTP request, over TCP or over the Unix socket that kubectl proxy listens on.
local http = require "socket.http"
local ltn12 = require "ltn12"
local socket = require "socket"
local unix = require "socket.unix"

local M = {}

local TIMEOUT = 30

-- What socket.http makes connections with: the host and port of the URL go nowhere.
local function unix_socket(path)
  return function()
    local stream = assert((unix.stream or unix)())
    return {
      connect = function()
        return stream:connect(path)
      end,
      settimeout = function(_, ...)
        return stream:settimeout(...)
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


--- Returns the answer's body and status code, or nil and why.
---@param request { method?: string, url: string, body?: string, type?: string, socket?: string }
---@return string? body
---@return integer|string code
function M.request(request)
  local pieces = {}
  local headers = { ["connection"] = "close" }
  if request.body then
    headers["content-length"] = #request.body
    headers["content-type"] = request.type or "application/json"
  end
  http.TIMEOUT = TIMEOUT
  local ok, code = http.request {
    method = request.method or "GET",
    url = request.url,
    headers = headers,
    source = request.body and ltn12.source.string(request.body),
    sink = ltn12.sink.table(pieces),
    redirect = false,
    create = request.socket and unix_socket(request.socket) or socket.tcp,
  }
  if not ok then
    return nil, code
  end
  return table.concat(pieces), code
end


return M
