--- `GET …/pods/NAME/log`: finds the log, or returns why there is none.
---
--- Rules: kubernetes/pkg/kubelet/kubelet_pods.go (validateContainerLogStatus).
local log_answer = require "cluster.kubelet.log_answer"
local log_options = require "cluster.kubelet.log_options"
local status = require "cluster.apiserver.status"
local streams = require "cluster.apiserver.streams"

local M = {}


local function status_of(pod, container)
  for _, list in ipairs { "containerStatuses", "initContainerStatuses" } do
    for _, entry in ipairs(pod.status and pod.status[list] or {}) do
      if entry.name == container then
        return entry
      end
    end
  end
end


-- Why a container that should have a log has none.
local function explain(pod, options)
  local entry = status_of(pod, options.container)
  local what = ("container %q in pod %q"):format(options.container, pod.metadata.name)
  local waiting = entry and entry.state.waiting
  if options.previous then
    return status.bad_request(("previous terminated %s not found"):format(what))
  elseif waiting then
    return status.bad_request(("%s is waiting to start: %s"):format(what, waiting.reason))
  end
  return status.bad_request(("%s is not available"):format(what))
end


-- Sends a log; an empty answer where containers leave none. @return boolean true: the request is answered
local function answer(request, reply, log, options)
  if streams.is_websocket(request) then
    reply = streams.bytes(request, reply)
  end
  if reply and log then
    log_answer.send(log, options, reply)
  elseif reply then
    reply:start(200, "text/plain")
    reply:finish()
  end
  return true
end


--- Serves it. @param logs table see logs.lua, or nil where containers leave none
function M.serve(server, logs)
  local function get(request, reply)
    local res = request.res
    local entry = server.store:get("pods", request.namespace, request.name)
    if not entry then
      return nil, status.not_found(res, request.name)
    end
    local pod = server.store.object(res, entry)
    local options, failure = log_options.read(request.query, pod)
    if not options then
      return nil, failure
    elseif not pod.spec.nodeName then
      return nil, status.bad_request(("pod %s does not have a host assigned"):format(request.name))
    end
    local log = logs and logs:find(pod, options.container, options.previous)
    if logs and not log then
      return nil, explain(pod, options)
    end
    return answer(request, reply, log, options)
  end
  server:subresource("pods", "log", { get = get })
end


return M
