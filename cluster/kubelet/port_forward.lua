--- `kubectl port-forward`: a connection to a port of a pod for each pair of streams.
---
--- Rules and wordings: kubelet/pkg/cri/streaming/portforward (httpstream.go).
local host = require "cluster.host"
local stream = require "cluster.apiserver.streams.stream"
local streams = require "cluster.apiserver.streams"

local M = {}

local TEXT = "text/plain; charset=utf-8"

-- Seconds that the client's side has when the pod's has ended (containerd, sandbox_portforward_linux.go).
local GRACE = 1


-- Connects one pair. @param dial function(ways) -> connection | nil, why
local function forward(pair, what, dial)
  local data, connection, timer, is_over = pair.data, nil, nil, false
  local function finish(why)
    if timer then
      timer:stop()
      timer = nil
    end
    if is_over then
      return
    end
    is_over = true
    if why then
      pair.error:write(("error forwarding port %d to %s: %s"):format(pair.port, what, why))
    end
    pair.error:close()
    data:close()
    pair.finished()
  end
  local why
  connection, why = dial {
    data = function(bytes)
      if data:write(bytes) > stream.WAITING_MAX then
        connection:pause(true)
        data:when_drained(function()
          connection:pause(false)
        end)
      end
    end,
    ended = function()
      data:close()
      timer = host.after(GRACE, function()
        timer = nil
        connection:close()
        finish()
      end)
    end,
    drained = function()
      pair.pause(false)
    end,
    closed = function(problem)
      finish(problem and ("dial tcp4 127.0.0.1:%d: connect: %s"):format(pair.port, problem:lower()))
    end,
  }
  if not connection then
    return finish(why)
  end
  data:listen {
    data = function(bytes)
      if connection:write(bytes) > stream.WAITING_MAX then
        pair.pause(true)
      end
    end,
    ended = function()
      connection:end_output()
    end,
    reset = function()
      connection:close()
    end,
  }
end


--- @param kubelet table with dial(pod, options), see init.lua
function M.serve(request, reply, kubelet, pod)
  local what = ("pod %s, uid %s"):format(pod.metadata.name, pod.metadata.uid)
  return streams.port_forward(request, reply, function(pair)
    forward(pair, what, function(ways)
      ways.port = pair.port
      return kubelet:dial(pod, ways)
    end)
  end)
end


--- Of a pod that has ended.
function M.refuse(reply, pod)
  reply:send(500, TEXT, ("pod not found (%q)"):format(pod.metadata.name .. "_" .. pod.metadata.namespace))
  return true
end


return M
