--- Which container of a pod a request means, about its log or to connect to it.
---
--- Rules: kubernetes/pkg/registry/core/pod/strategy.go (validateContainer).
local status = require "cluster.apiserver.status"

local M = {}

local DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


local function names_of(pod)
  local names, known = {}, {}
  for _, list in ipairs { "containers", "initContainers", "ephemeralContainers" } do
    for _, container in ipairs(pod.spec[list] or {}) do
      if list == "containers" then
        names[#names + 1] = container.name
      end
      known[container.name] = true
    end
  end
  return names, known
end


--- @param name string? as the request has it
--- @return string|nil name, or nil and a status
function M.find(pod, name)
  local names, known = names_of(pod)
  if not name or name == "" then
    if #names == 1 then
      return names[1]
    end
    local marked = (pod.metadata.annotations or {})[DEFAULT_CONTAINER]
    if known[marked] then
      return marked
    end
    return nil, status.bad_request(("a container name must be specified for pod %s, choose one of: [%s]"):format(
      pod.metadata.name, table.concat(names, " ")))
  elseif not known[name] then
    return nil, status.bad_request(("container %s is not valid for pod %s"):format(name, pod.metadata.name))
  end
  return name
end


return M
