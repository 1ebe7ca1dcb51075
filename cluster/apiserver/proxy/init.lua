--- `proxy` of pods, Services and nodes: passes a request on to what listens there, and the answer back.
---
--- Called by resources/pod/connect.lua, resources/services.lua and resources/nodes.lua.
--- Rules: kubernetes/pkg/registry/core/{pod,service,node}/rest, apimachinery/pkg/util/proxy/upgradeaware.go,
--- apiserver/pkg/endpoints/handlers/{rest,get}.go (ConnectResource, getRequestOptions).
local answer = require "cluster.apiserver.proxy.answer"
local connect = require "cluster.apiserver.admission.connect"
local status = require "cluster.apiserver.status"
local urls = require "cluster.apiserver.proxy.urls"

local M = {}

local METHODS = { GET = true, HEAD = true, POST = true, PUT = true, PATCH = true, DELETE = true, OPTIONS = true }
local READS = { GET = true, HEAD = true }
local PORTS = { http = 80, https = 443 }


-- The path behind ".../proxy", in the form that the server's own options have.
local function subpath(request)
  local parts, length = request.parts, 0
  local count = request.namespace and 7 or 5 -- api, v1, [namespaces, NAMESPACE,] plural, NAME, proxy
  for i = 1, count do
    length = length + 1 + #parts[i]
  end
  local path = request.path:sub(length + 1):gsub("^/", ""):gsub("/+$", "")
  if path ~= "" and path:sub(1, 1) ~= "/" then
    path = "/" .. path
  end
  path = request.path:sub(-1) == "/" and path .. "/" or path
  return path ~= "" and path or nil
end


-- The path of the proxy itself: what is in front of the pod's.
local function prefix_of(request, path)
  if request.path:sub(-1) == "/" and path:sub(-1) ~= "/" then
    path = path .. "/"
  end
  local length = #request.path - #path
  return request.path:sub(length + 1) == path and request.path:sub(1, length) or request.path
end


local function redirect(request, reply)
  local query = request.raw_query ~= "" and "?" .. request.raw_query or ""
  reply:send(301, nil, "", { Location = request.path .. "/" .. query })
end


-- Where nothing listens, as pods are no processes, nobody is asked.
local function send(request, reply, found, path)
  local via = {
    prefix = prefix_of(request, path), path = path == "" and "/" or path,
    place = found.place, host = request.headers.host,
    dialed = found.place:find ":" and found.place or found.place .. ":" .. PORTS[found.scheme],
  }
  local passing = answer.new(request, reply, via)
  local library = request.server.has_real_pods and package.loaded["cluster.http"]
  if not library then
    return passing:fail "connect to a pod: connection refused"
  end
  local server = request.server
  server.proxy_client = server.proxy_client or library.client { insecure = true }
  passing:send(server.proxy_client, { scheme = found.scheme, path = via.path, query = request.raw_query })
end


local function wants_upgrade(request)
  return (request.headers.connection or ""):lower():find("upgrade", 1, true) ~= nil
end


-- The refusal of a request that cannot be passed on at all.
local function refusal(request)
  if not METHODS[request.method] then
    return status.method_not_allowed()
  elseif request.query.dryRun then
    return status.bad_request "dryRun is not supported"
  end
end


--- The handlers of a `proxy` subresource.
--- @param kind string of its options  @param locate function(request), see location.lua
function M.part(kind, locate)
  local function pass(request, reply)
    local options = { kind = kind, apiVersion = "v1", path = subpath(request) }
    local failure = refusal(request) or connect.ask(request, options)
    if failure then
      return nil, failure
    end
    local found
    found, failure = locate(request)
    if not found then
      return nil, failure
    elseif wants_upgrade(request) then
      return nil, status.not_implemented "WebSockets and other upgrades through the proxy"
    end
    local path = urls.clean_to_slash(options.path or "")
    local kubelet = found.kubelet and request.server.kubelets[found.node]
    if path == "" and READS[request.method] then
      redirect(request, reply)
    elseif kubelet then
      kubelet(request, reply, path)
    else
      send(request, reply, found, path)
    end
    return true
  end
  return { connect = pass, rest = true, any_form = true }
end


return M
