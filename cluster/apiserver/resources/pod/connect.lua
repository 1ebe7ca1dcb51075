--- Connections to a pod: exec, attach, portforward and proxy. Webhooks and policies are asked first, as some clusters
--- forbid them; then the node serves them, if there is one that runs pods; proxy: see proxy/.
---
--- Rules: apiserver/pkg/endpoints/handlers/rest.go (ConnectResource), apimachinery/pkg/runtime/conversion.go,
--- kubernetes/pkg/registry/core/pod/strategy.go (streamLocation), k8s.io/api/core/v1 (Pod…Options).
local admission = require "cluster.apiserver.admission.connect"
local host = require "cluster.host"
local location = require "cluster.apiserver.proxy.location"
local proxy = require "cluster.apiserver.proxy"
local status = require "cluster.apiserver.status"

local M = {}

-- Fields of options in a query, and how they are read.
local function text(values) return values[1] end
local function truth(values) return values[1] ~= "0" and values[1]:lower() ~= "false" end
local function texts(values) return host.json.array { table.unpack(values) } end
local function numbers(values)
  local list = host.json.array {}
  for i, value in ipairs(values) do
    list[i] = math.tointeger(tonumber(value)) or 0
  end
  return list
end

local OPTIONS = {
  attach = { kind = "PodAttachOptions", stdin = truth, stdout = truth, stderr = truth, tty = truth, container = text },
  exec = { kind = "PodExecOptions", stdin = truth, stdout = truth, stderr = truth, tty = truth, container = text,
    command = texts },
  portforward = { kind = "PodPortForwardOptions", ports = numbers },
}


local function options_of(request)
  local known = OPTIONS[request.subresource]
  local options = { kind = known.kind, apiVersion = "v1" }
  for name, values in pairs(request.query) do
    local read = name ~= "kind" and known[name]
    options[name] = read and read(values) or nil -- what is false is left out
  end
  return options
end


local function find_pod(request)
  local entry = request.server.store:get("pods", request.namespace, request.name)
  if not entry then
    return nil, status.not_found(request.res, request.name)
  end
  return request.server.store.object(request.res, entry)
end


-- The node serves them, if there is one that runs pods: see kubelet/connections.lua.
local function connect(request, reply)
  local options = options_of(request)
  local failure = admission.ask(request, options)
  if failure then
    return nil, failure
  end
  local pod, missing = find_pod(request)
  local served = request.server.connections
  if not pod then
    return nil, missing
  elseif not served then
    return nil, status.not_implemented("pods/" .. request.subresource)
  end
  return served[request.subresource](request, reply, pod, options)
end


for name in pairs(OPTIONS) do
  M[name] = { connect = connect }
end
M.proxy = proxy.part("PodProxyOptions", location.of_pod)

return M
