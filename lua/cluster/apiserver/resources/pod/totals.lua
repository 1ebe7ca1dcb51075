--- What a pod requests and is limited to as a whole.
---
--- Rules: component-helpers/resource/helpers.go (PodRequests, PodLimits).
local lists = require "cluster.apiserver.resources.resource_lists"

local M = {}

local NONE = {}
-- What a pod can say for all its containers together.
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


--- What a pod with that spec requests: name → amount.
function M.requests(spec)
  return total(spec, "requests")
end


--- What it is limited to.
function M.limits(spec)
  return total(spec, "limits")
end


return M
