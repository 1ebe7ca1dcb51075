--- Requests that are not about a resource: discovery, OpenAPI, health, version.
---
--- Rules: apiserver/pkg/server/{healthz,routes}, kube-aggregator (the list of paths).
local later = require "cluster.later"
local discovery = later.module "cluster.apiserver.discovery"
local health = require "cluster.apiserver.health"
local openapi = later.module "cluster.apiserver.openapi"
local respond = require "cluster.apiserver.respond"
local status = require "cluster.apiserver.status"

local M = {}

-- The release whose answers are given.
local VERSION = [[{
  "major": "1",
  "minor": "36",
  "emulationMajor": "1",
  "emulationMinor": "36",
  "minCompatibilityMajor": "1",
  "minCompatibilityMinor": "35",
  "gitVersion": "v1.36.3",
  "gitCommit": "$Format:%H$",
  "gitTreeState": "",
  "buildDate": "1970-01-01T00:00:00Z",
  "goVersion": "lua5.4",
  "compiler": "moonloop",
  "platform": "linux/amd64"
}]]

-- Paths that a real server serves and this one does not.
local ABSENT = { "/metrics", "/flagz", "/statusz", "/logs", "/debug", "/.well-known", "/openid" }

local HEALTH = { healthz = true, livez = true, readyz = true }


local function page_not_found(reply)
  respond.plain(reply, 404, "404 page not found\n")
end


local function version(request, reply)
  if request.method ~= "GET" then
    return respond.failure(request, reply, status.method_not_allowed())
  elseif respond.negotiate_json(request, reply) then
    reply:send(200, "application/json", VERSION)
  end
end


local function discover(request, reply)
  if not discovery.serve(request, reply) then
    page_not_found(reply)
  end
end


local function describe(request, reply)
  if not openapi.serve(request, reply) then
    page_not_found(reply)
  end
end


local function absent(path)
  for _, prefix in ipairs(ABSENT) do
    if path == prefix or path:sub(1, #prefix + 1) == prefix .. "/" then
      return true
    end
  end
  return false
end


--- Answers a request that is about no resource.
function M.serve(request, reply)
  local first, own = request.parts[1], request.server.paths[request.path]
  if own then
    return own(request, reply)
  elseif HEALTH[first] then
    return health.serve(request, reply)
  elseif request.path == "/version" or request.path == "/version/" then
    return version(request, reply)
  elseif first == "api" or first == "apis" then
    return discover(request, reply)
  elseif first == "openapi" then
    return describe(request, reply)
  elseif absent(request.path) then
    return respond.failure(request, reply, status.not_implemented("GET " .. request.path))
  end
  page_not_found(reply)
end


return M
