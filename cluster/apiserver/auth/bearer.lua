--- The token that a request shows: in its header Authorization or, as a page in a browser can set no headers, among the
--- protocols of a WebSocket.
---
--- Rules: apiserver/pkg/authentication/request/{bearertoken/bearertoken.go,websocket/protocol.go}.
local jwt = require "cluster.apiserver.auth.jwt"
local websocket = require "cluster.apiserver.streams.websocket"

local M = {}

local PROTOCOL = "^base64url%.bearer%.authorization%.k8s%.io%.([%w_-]*)$"
local BROKEN = "" -- nobody's token


-- The token of "Bearer …", or nil.
local function from_header(header)
  local scheme, token = header:match("^%s*(%S+) ([^ ]*)")
  return scheme and scheme:lower() == "bearer" and token ~= "" and token or nil
end


-- The one token among the protocols, which it is taken from; another one has to be left for the answer.
local function from_protocols(request)
  local token, rest = nil, {}
  for _, protocol in ipairs(websocket.offered(request)) do
    local encoded = protocol:match(PROTOCOL)
    if not encoded then
      rest[#rest + 1] = protocol
    elseif token then
      return BROKEN
    else
      token = jwt.from_url(encoded) or BROKEN
    end
  end
  if token then
    request.headers["sec-websocket-protocol"] = table.concat(rest, ",")
  end
  return token and (not rest[1] and BROKEN or token)
end


--- The token of a request; nil when it shows none. "", which is nobody's, for protocols that are wrong.
function M.token(request)
  local header = request.headers.authorization
  local token = header and from_header(header)
  if not token and request.headers["sec-websocket-protocol"] and websocket.is_asked(request) then
    return from_protocols(request)
  end
  return token
end


return M
