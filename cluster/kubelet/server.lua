--- Answers requests to `proxy` of a node as its kubelet does: /healthz, /pods and /containerLogs. It opens no port.
---
--- Rules and wordings: kubernetes/pkg/kubelet/server/server.go.
local host = require "cluster.host"
local log_answer = require "cluster.kubelet.log_answer"
local log_options = require "cluster.kubelet.log_options"
local respond = require "cluster.apiserver.respond"

local M = {}


local function text(reply, code, body)
  reply:send(code, "text/plain; charset=utf-8", body)
end


-- All pods of the node.
local function pods_of(server, node)
  local res = server.registry:by_kind("", "v1", "Pod")
  local items = host.json.array {}
  server.store:collection("pods"):each(nil, nil, function(entry)
    if entry.fields["spec.nodeName"] == node then
      items[#items + 1] = server.store.object(res, entry)
    end
    return true
  end)
  return { kind = "PodList", apiVersion = "v1", metadata = {}, items = items }
end


local function has_container(pod, name)
  for _, list in ipairs { "containers", "initContainers", "ephemeralContainers" } do
    for _, container in ipairs(pod.spec[list] or {}) do
      if container.name == name then
        return true
      end
    end
  end
  return false
end


-- /containerLogs/NAMESPACE/POD/CONTAINER
local function serve_log(self, request, reply, path)
  local namespace, name, container = path:match "^/containerLogs/([^/]+)/([^/]+)/([^/]+)/?$"
  if not namespace then
    return text(reply, 404, "404: Page Not Found")
  end
  local server = self.server
  local entry = server.store:get("pods", namespace, name)
  local pod = entry and server.store.object(server.registry:by_kind("", "v1", "Pod"), entry)
  if not pod or pod.spec.nodeName ~= self.node then
    return text(reply, 404, ("pod %q does not exist"):format(name))
  elseif not has_container(pod, container) then
    return text(reply, 404, ("container %q not found in pod %q"):format(container, name))
  end
  local query = setmetatable({ container = { container } }, { __index = request.query })
  local options, failure = log_options.read(query, pod)
  if not options then
    return respond.failure(request, reply, failure)
  end
  local log = self.logs and self.logs:find(pod, container, options.previous)
  if not log then
    return text(reply, 400, ("container %q in pod %q is not available"):format(container, name))
  end
  log_answer.send(log, options, reply)
end


local function answer(self, request, reply, path)
  local is_log = path:find "^/containerLogs/"
  if not is_log and path ~= "/healthz" and path ~= "/pods" and path ~= "/pods/" then
    text(reply, 404, "404: Page Not Found")
  elseif request.method ~= "GET" and request.method ~= "HEAD" then
    text(reply, 405, "405: Method Not Allowed")
  elseif is_log then
    serve_log(self, request, reply, path)
  elseif path == "/healthz" then
    text(reply, 200, "ok")
  else
    reply:send(200, "application/json", host.json.encode(pods_of(self.server, self.node)))
  end
end


--- @param node string its name  @param logs table? see logs.lua, or nil where containers leave none
function M.serve(server, node, logs)
  local self = { server = server, node = node, logs = logs }
  server.kubelets[node] = function(request, reply, path)
    answer(self, request, reply, path)
  end
end


return M
