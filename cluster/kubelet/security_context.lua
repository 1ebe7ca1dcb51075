--- Fields of a container's security context.
---
--- Rules: kubernetes/pkg/securitycontext/util.go (DetermineEffectiveSecurityContext).
local M = {}


--- A field of the container's securityContext, or else of the pod's.
function M.field(pod, container, name)
  local own, common = container.securityContext or {}, pod.spec.securityContext or {}
  if own[name] ~= nil then
    return own[name]
  end
  return common[name]
end


return M
