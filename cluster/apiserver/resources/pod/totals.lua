--- Computes the requests and limits of a pod as a whole.
---
--- Rules: component-helpers/resource/helpers.go (PodRequests, PodLimits).
local lists = require "cluster.apiserver.resources.resource_lists"

local M = {}

local NONE = {}
-- Resources that a pod can set for all its containers together.
local OF_PODS = { cpu = true, memory = true }


-- `kind`: "requests" or "limits".
local function total(spec, kind)
  local sum, sidecars, initial = {}, {}, {}
  for _, container in ipairs(spec.containers) do
    lists.add(sum, (container.resources or NONE)[kind])
  end
  for _, container in ipairs(spec.initContainers or NONE) do
    local amounts = (container.resources or NONE)[kind]
    if container.restartPolicy == "Always" then
      lists.add(sum, amounts)
      lists.add(sidecars, amounts)
      lists.raise(initial, sidecars)
    else
      lists.raise(initial, lists.add(lists.add({}, amounts), sidecars))
    end
  end
  lists.raise(sum, initial)
  for name, text in pairs((spec.resources or NONE)[kind] or NONE) do
    if OF_PODS[name] or name:find("^hugepages%-") then
      sum[name] = text
    end
  end
  return sum
end


--- Returns the requests of a pod with that spec: name → amount.
function M.requests(spec)
  return total(spec, "requests")
end


--- Returns the limits of a pod with that spec: name → amount.
function M.limits(spec)
  return total(spec, "limits")
end


return M
