--- The security contexts of pods and containers: identity and rights.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateSecurityContext, validatePodSpecSecurityContext).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"

local M = {}

local NONE = {}
local ID_MAX = 2147483647


-- The number of a user or group; nil is fine.
local function check_id(id, path, errors)
  if id and (id < 0 or id > ID_MAX) then
    errors[#errors + 1] = field.invalid(path, id, ("must be between 0 and %d, inclusive"):format(ID_MAX))
  end
end


local function check_profile(profile, path, errors)
  if not profile then
    return
  end
  if profile.type == "Localhost" then
    if not profile.localhostProfile then
      errors[#errors + 1] = field.required(path .. ".localhostProfile", "must be set when seccomp type is Localhost")
    end
  elseif profile.localhostProfile then
    errors[#errors + 1] = field.invalid(path .. ".localhostProfile", profile.localhostProfile,
      "can only be set when seccomp type is Localhost")
  end
  if profile.type == "" then
    errors[#errors + 1] = field.required(path .. ".type", "type is required when seccompProfile is set")
  else
    check.one_of(profile.type, { "Localhost", "RuntimeDefault", "Unconfined" }, path .. ".type", errors)
  end
end


--- securityContext of a container.
function M.container(context, path, errors)
  check_id(context.runAsUser, path .. ".runAsUser", errors)
  check_id(context.runAsGroup, path .. ".runAsGroup", errors)
  check.one_of(context.procMount, { "Default", "Unmasked" }, path .. ".procMount", errors)
  check_profile(context.seccompProfile, path .. ".seccompProfile", errors)
  if context.allowPrivilegeEscalation == false and context.privileged then
    errors[#errors + 1] = field.invalid(path, context,
      "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
  end
end


--- securityContext of a pod.
function M.pod(spec, path, errors)
  local context = spec.securityContext or NONE
  check_id(context.fsGroup, path .. ".fsGroup", errors)
  check_id(context.runAsUser, path .. ".runAsUser", errors)
  check_id(context.runAsGroup, path .. ".runAsGroup", errors)
  for i, group in ipairs(context.supplementalGroups or NONE) do
    check_id(group, ("%s.supplementalGroups[%d]"):format(path, i - 1), errors)
  end
  if spec.shareProcessNamespace and spec.hostPID then
    errors[#errors + 1] = field.invalid(path .. ".shareProcessNamespace", true,
      "ShareProcessNamespace and HostPID cannot both be enabled")
  end
  check.one_of(context.fsGroupChangePolicy, { "Always", "OnRootMismatch" }, path .. ".fsGroupChangePolicy", errors)
  check_profile(context.seccompProfile, path .. ".seccompProfile", errors)
  check.one_of(context.supplementalGroupsPolicy, { "Merge", "Strict" }, path .. ".supplementalGroupsPolicy", errors)
end


return M
