--- ComponentStatuses: how the parts of the control plane are. They are one process here, so whoever gets an answer
--- learns that they are well. Nothing is stored.
---
--- Rules: kubernetes/pkg/registry/core/componentstatus/rest.go, pkg/printers/internalversion/printers.go.
local host = require "cluster.host"
local options = require "cluster.apiserver.verbs.options"
local scope = require "cluster.apiserver.verbs.scope"
local status = require "cluster.apiserver.status"

local COMPONENTS = { "controller-manager", "etcd-0", "scheduler" }
local NOT_FOUND = { group = "", plural = "componentstatus" }


local function component(name)
  return {
    metadata = { name = name },
    conditions = host.json.array { { type = "Healthy", status = "True", message = "ok" } },
  }
end


local function get(request)
  for _, name in ipairs(COMPONENTS) do
    if name == request.name then
      local object = component(name)
      object.apiVersion, object.kind = "v1", "ComponentStatus"
      return 200, host.json.encode(object)
    end
  end
  return nil, status.not_found(NOT_FOUND, request.name)
end


local function list(request)
  local settings, failure = options.list(request, false)
  if not settings then
    return nil, failure
  end
  local selector
  selector, failure = scope.selector(request, settings)
  if not selector then
    return nil, failure
  end
  local items = host.json.array {}
  for _, name in ipairs(COMPONENTS) do
    if selector.empty or selector.match { name = name, namespace = "", fields = {} } then
      items[#items + 1] = component(name)
    end
  end
  return 200, host.json.encode {
    apiVersion = "v1", kind = "ComponentStatusList", metadata = {}, items = items,
  }
end


local function cells(obj)
  local condition = obj.conditions[1]
  return { obj.metadata.name, condition.status == "True" and "Healthy" or "Unhealthy", condition.message, "" }
end


return { handlers = { get = get, list = list }, cells = cells }
