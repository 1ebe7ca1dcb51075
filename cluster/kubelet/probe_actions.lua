--- Probes and hooks of a container that is a local process: a command, a GET, a connection, a call of gRPC.
---
--- Rules and wordings: kubernetes/pkg/probe/exec, http, tcp; pkg/kubelet/lifecycle.
local exec = require "cluster.kubelet.exec"
local grpc_health = require "cluster.kubelet.grpc_health"
local host = require "cluster.host"
local process = require "cluster.process"

local M = {}

local OUTPUT_MAX = 10 * 1024 -- of a command, for the message


local function port_of(container, port)
  if math.type(port) then
    return port
  end
  for _, entry in ipairs(container.ports or {}) do
    if entry.name == port then
      return entry.containerPort
    end
  end
  return math.tointeger(tonumber(port))
end


-- Where a container is asked that says nothing else.
local function address_of(handle)
  return handle.network and handle.run.pod.status.podIP or "127.0.0.1"
end


-- Runs a command where the container is.
local function run_command(handle, command, seconds, fn)
  local printed, size, is_late, timer = {}, 0, false, nil
  local running, why = exec.start(handle, {
    command = command,
    output = function(bytes)
      if size < OUTPUT_MAX then
        printed[#printed + 1] = bytes:sub(1, OUTPUT_MAX - size)
        size = size + #printed[#printed]
      end
    end,
    ended = function(how)
      timer:stop()
      if is_late then
        fn(false, ("command timed out: %q timed out after %ds"):format(table.concat(command, " "), seconds))
      else
        fn(how.code == 0, how.started and table.concat(printed) or how.message)
      end
    end,
  })
  if not running then
    host.defer(function()
      fn(false, why)
    end)
    return
  end
  timer = host.after(seconds, function()
    is_late = true
    running:stop(0)
  end)
end


local function get(handle, action, seconds, fn)
  local headers = {}
  for i, header in ipairs(action.httpHeaders or {}) do
    headers[i] = { header.name, header.value }
  end
  local path = action.path or "/"
  local url = ("%s://%s:%d%s%s"):format((action.scheme or "HTTP"):lower(), action.host or address_of(handle),
    port_of(handle.run.container, action.port) or 0, path:sub(1, 1) == "/" and "" or "/", path)
  process.get(url, headers, seconds, function(code, why)
    if not code then
      fn(false, ("Get %q: %s"):format(url, why))
    else
      fn(code >= 200 and code < 400, ("HTTP probe failed with statuscode: %d"):format(code))
    end
  end)
end


local function connect(handle, action, seconds, fn)
  local port = port_of(handle.run.container, action.port)
  local address = action.host or address_of(handle)
  local started, message
  if not port or address:find "%a" and not address:find ":" then
    message = ("%s:%s: an address and a port are needed"):format(address, tostring(action.port))
  else
    started, message = process.connect(address, port, seconds, function(zero, why)
      fn(zero ~= nil, why)
    end)
  end
  if not started then
    host.defer(function()
      fn(false, message)
    end)
  end
end


--- Does one action, of a probe or of a hook: exec, httpGet, tcpSocket, grpc or sleep.
--- @param seconds number it may take
--- @param fn function(ok, message), called from the loop; not at all once the container has ended
function M.act(handle, action, seconds, fn)
  local function answered(ok, message)
    if not handle.is_over then
      fn(ok, message)
    end
  end
  if action.exec then
    handle:when_started(function()
      run_command(handle, action.exec.command, seconds, answered)
    end)
  elseif action.httpGet then
    get(handle, action.httpGet, seconds, answered)
  elseif action.tcpSocket then
    connect(handle, action.tcpSocket, seconds, answered)
  elseif action.grpc then
    grpc_health.check(address_of(handle), action.grpc.port, action.grpc.service, seconds, answered)
  else
    host.after(action.sleep.seconds, function()
      answered(true)
    end)
  end
end


return M
