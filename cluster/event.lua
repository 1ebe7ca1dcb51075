--- The body of an Event, as the controllers and the kubelet send it.
local host = require "cluster.host"

local M = {}


--- An Event on an object that has its apiVersion and kind; on one of no namespace it is in "default".
--- @param component string the name of the sender
--- @param node string|nil where the sender runs
function M.new(object, type, reason, message, component, node)
  local now, meta = host.timestamp(), object.metadata
  return {
    apiVersion = "v1",
    kind = "Event",
    metadata = {
      name = ("%s.%016x"):format(meta.name, host.random(math.maxinteger)), namespace = meta.namespace or "default",
    },
    involvedObject = {
      apiVersion = object.apiVersion, kind = object.kind, name = meta.name, namespace = meta.namespace,
      uid = meta.uid, resourceVersion = meta.resourceVersion,
    },
    type = type,
    reason = reason,
    message = message,
    count = 1,
    firstTimestamp = now,
    lastTimestamp = now,
    source = { component = component, host = node },
    reportingComponent = component,
    reportingInstance = node or "",
  }
end


return M
