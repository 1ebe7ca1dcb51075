--- The rules by which a container starts again when it has ended, as a kubelet and an API server see them.
---
--- Rules: kubernetes/pkg/api/v1/pod/util.go (ContainerShouldRestart, AllContainersCouldRestart).
local M = {}

local NONE = {}


local function is_about(rule, code)
  local codes = rule.exitCodes or NONE
  for _, value in ipairs(codes.values or NONE) do
    if value == code then
      return codes.operator == "In"
    end
  end
  return codes.operator == "NotIn"
end


--- Returns true if a container starts again after this exit code: by one of its rules, by its own policy, or else by
--- that of its pod. Rules count only beside a policy of its own.
--- @param container table of a pod's spec  @param policy string the pod's restartPolicy  @param code integer
function M.follows(container, policy, code)
  for _, rule in ipairs(container.restartPolicy and container.restartPolicyRules or NONE) do
    if is_about(rule, code) then
      return true
    end
  end
  policy = container.restartPolicy or policy
  return policy == "Always" or policy == "OnFailure" and code ~= 0
end


--- Returns true if a container has a rule that starts all containers of its pod again.
function M.starts_all(container)
  for _, rule in ipairs(container.restartPolicyRules or NONE) do
    if rule.action == "RestartAllContainers" then
      return true
    end
  end
  return false
end


return M
