--- `exec`, `attach` and `portforward` of pods: finds the container, or says why the request leads nowhere.
---
--- Rules: kubernetes/pkg/registry/core/pod/strategy.go (streamLocation, PortForwardLocation),
--- pkg/registry/core/pod/rest/subresources.go, pkg/kubelet/server/server.go.
local container_name = require "cluster.kubelet.container_name"
local port_forward = require "cluster.kubelet.port_forward"
local remote_command = require "cluster.kubelet.remote_command"
local status = require "cluster.apiserver.status"

local M = {}

local PAST = { Succeeded = true, Failed = true }


-- @return table|nil a status, when nothing can be connected to
local function check(request, pod)
  if (pod.spec.nodeName or "") == "" then
    return status.bad_request(("pod %s does not have a host assigned"):format(pod.metadata.name))
  elseif not request.headers.upgrade then
    return status.bad_request "Upgrade request required"
  end
end


-- @param act function of remote_command
local function on_container(kubelet, act)
  return function(request, reply, pod, options)
    local name, failure = container_name.find(pod, options.container)
    failure = failure or check(request, pod)
    if failure then
      return nil, failure
    end
    local handle = kubelet:container(pod, name)
    if not handle then
      return remote_command.refuse(request, reply, options, ("container not found (%q)"):format(name))
    elseif not handle.exec then
      return nil, status.not_implemented(("pods/%s where pods run no processes"):format(request.subresource))
    end
    return act(request, reply, handle, options)
  end
end


local function on_ports(kubelet)
  return function(request, reply, pod)
    local failure = check(request, pod)
    if failure then
      return nil, failure
    elseif not kubelet.is_real then
      return nil, status.not_implemented "pods/portforward where pods run no processes"
    elseif PAST[pod.status.phase] then
      return port_forward.refuse(reply, pod)
    end
    return port_forward.serve(request, reply, kubelet, pod)
  end
end


--- From now on the server's pods can be connected to; webhooks and policies have been asked then.
--- @param kubelet table see init.lua
function M.serve(server, kubelet)
  server.connections = {
    exec = on_container(kubelet, remote_command.exec),
    attach = on_container(kubelet, remote_command.attach),
    portforward = on_ports(kubelet),
  }
end


return M
