--- Connections to a pod: exec, attach, portforward and proxy. Nothing serves them; webhooks and policies are asked
--- before the client is told so, as some clusters forbid them.
---
--- Rules: apiserver/pkg/endpoints/handlers/rest.go (ConnectResource), k8s.io/api/core/v1 (Pod…Options).
local admission = require "cluster.apiserver.admission"
local host = require "cluster.host"
local status = require "cluster.apiserver.status"

local M = {}

local TRUE = { [""] = true, ["true"] = true, ["1"] = true, t = true, T = true, TRUE = true, True = true }

-- Fields of options in a query, and how they are read.
local function text(values) return values[1] end
local function truth(values) return TRUE[values[1]] == true end
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
  proxy = { kind = "PodProxyOptions", path = text },
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


local function connect(request)
  local options = options_of(request)
  request.presented = { kind = { group = "", version = "v1", kind = options.kind }, of = function(same)
    return same
  end }
  local failure = admission.mutating(request, "CONNECT", options, nil, {})
    or admission.validating(request, "CONNECT", options, nil, {})
  return nil, failure or status.not_implemented("pods/" .. request.subresource)
end


for name in pairs(OPTIONS) do
  M[name] = { connect = connect, rest = name == "proxy" }
end

return M
