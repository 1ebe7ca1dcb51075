--- FlowSchemas: whether the level that one refers to is there.
---
--- Rules and wordings: apiserver/pkg/util/flowcontrol/apf_controller.go (syncFlowSchemaStatuses).
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"

local M = {}

local GROUP, DANGLING = "flowcontrol.apiserver.k8s.io", "Dangling"
local LEVELS = "prioritylevelconfigurations." .. GROUP
local REFERS = "This FlowSchema references the PriorityLevelConfiguration object named %q "


local function reconcile(server, api, object)
  local level = object.spec.priorityLevelConfiguration.name
  local found = server.store:get(LEVELS, "", level) ~= nil
  local status = host.json.copy(object.status or {})
  status.conditions = status.conditions or host.json.array {}
  local condition
  for _, known in ipairs(status.conditions) do
    condition = known.type == DANGLING and known or condition
  end
  if not condition then
    condition = { type = DANGLING }
    table.insert(status.conditions, condition)
  end
  local truth = found and "False" or "True"
  if condition.status ~= truth then
    condition.lastTransitionTime = host.timestamp()
  end
  condition.status, condition.reason = truth, found and "Found" or "NotFound"
  condition.message = REFERS:format(level) .. (found and "and it exists" or "but there is no such object")
  api.write_status(object, status)
end


--- Starts the controller.
function M.start(server)
  -- All FlowSchemas, when a level comes or goes.
  local function everyone(_, previous, is_gone)
    local keys = {}
    if previous and not is_gone then
      return keys
    end
    server.store:collection("flowschemas." .. GROUP):each(nil, nil, function(entry)
      keys[#keys + 1] = "/" .. entry.name
    end)
    return keys
  end
  controller.start(server, {
    name = "flowschema-controller", kind = { GROUP, "v1", "FlowSchema" },
    maps = { [LEVELS] = everyone },
    reconcile = function(api, object)
      return reconcile(server, api, object)
    end,
  })
end


return M
