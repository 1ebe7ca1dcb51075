--- Header fields on their way through the proxy, in both directions.
---
--- Rules: Go's net/http/httputil (ReverseProxy), apimachinery/pkg/util/proxy/{transport,upgradeaware}.go,
--- apiserver/pkg/endpoints/filters/{authentication,impersonation}.go (what a pod never gets to see).
local urls = require "cluster.apiserver.proxy.urls"

local M = {}

-- Fields about one connection, and not about the message.
local HOPS = {
  connection = true, ["proxy-connection"] = true, ["keep-alive"] = true, ["proxy-authenticate"] = true,
  ["proxy-authorization"] = true, te = true, trailer = true, ["transfer-encoding"] = true, upgrade = true,
}

-- Fields that the client sent for the API server alone; the length is counted anew.
local OWN = { authorization = true, ["content-length"] = true, expect = true }

-- A pod does not decide who may read what comes from the API server.
local CORS = {
  ["access-control-allow-credentials"] = true, ["access-control-allow-headers"] = true,
  ["access-control-allow-methods"] = true, ["access-control-allow-origin"] = true,
}


-- The names in a list with commas, in lowercase, as a set.
local function names_in(text)
  local set = {}
  for name in (text or ""):lower():gmatch "[^,%s]+" do
    set[name] = true
  end
  return set
end


-- "content-type" → "Content-Type".
local function canonical(name)
  return (name:lower():gsub("^%l", string.upper):gsub("%-%l", string.upper))
end


--- The fields that are sent to the pod.
--- @param request table  @param via table { prefix =, path = of the pod, decoded }
--- @return table name → value
function M.outgoing(request, via)
  local headers, named = {}, names_in(request.headers.connection)
  for name, value in pairs(request.headers) do
    if not HOPS[name] and not OWN[name] and not named[name] and not name:find "^impersonate%-" then
      headers[canonical(name)] = value
    end
  end
  if names_in(request.headers.te).trailers then
    headers.Te = "trailers"
  end
  if request.client then
    local before = headers["X-Forwarded-For"]
    headers["X-Forwarded-For"] = (before and before .. ", " or "") .. request.client
  end
  local uri = urls.clean(via.prefix .. urls.escape(via.path))
  headers["X-Forwarded-Uri"] = via.path:sub(-1) == "/" and uri:sub(-1) ~= "/" and uri .. "/" or uri
  return headers
end


--- The fields of the pod's answer that the client gets.
--- @param fields table list of { name, value }
--- @return table headers name → list of values, without Content-Type
--- @return string|nil content_type
function M.incoming(fields)
  local headers, named = {}, {}
  for _, field in ipairs(fields) do
    if field[1]:lower() == "connection" then
      for name in pairs(names_in(field[2])) do
        named[name] = true
      end
    end
  end
  for _, field in ipairs(fields) do
    local low = field[1]:lower()
    if not HOPS[low] and not CORS[low] and not named[low] and not low:find "[^%w!#$%%&'*+.^_`|~-]" then
      local name = canonical(low)
      headers[name] = headers[name] or {}
      table.insert(headers[name], field[2])
    end
  end
  local types = headers["Content-Type"]
  headers["Content-Type"] = nil
  return headers, types and types[1]
end


return M
