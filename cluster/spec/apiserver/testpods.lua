--- Listeners in pods, for specs: a function answers requests to pods, in place of cluster.http.
local host = require "cluster.host"

local M = {}


--- Requests to pods go to `answer` from now on.
--- @param answer function(options, call): options as of cluster.http's request; it calls their head, data and done,
---   now or later; call.paused and call.cancelled tell what has been done to it
--- @return table list of the calls, each with `options`
function M.install(server, answer)
  server.server.has_real_pods = true
  local calls, client = {}, {}
  function client.request(_, options)
    local call = { options = options }
    function call.pause(_, paused) call.paused = paused end
    function call.cancel() call.cancelled = true end
    calls[#calls + 1] = call
    host.defer(function() answer(options, call) end)
    return call
  end
  package.loaded["cluster.http"] = { client = function(options)
    calls.client = options
    return client
  end }
  return calls
end


--- Nothing listens any more.
function M.remove()
  package.loaded["cluster.http"] = nil
end


--- Stores a pod with an address. @param ports table? of its container
function M.pod(server, name, address, ports)
  local path = "/api/v1/namespaces/default/pods"
  server:must("POST", path, { metadata = { name = name },
    spec = { nodeName = "moonloop", containers = { { name = "c", image = "i", ports = ports } } } })
  if address then
    server:patch("merge", path .. "/" .. name .. "/status",
      { status = { podIP = address, podIPs = { { ip = address } } } })
  end
end


return M
