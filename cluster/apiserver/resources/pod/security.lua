--- The security contexts of pods and containers: identity and rights.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateSecurityContext, validatePodSpecSecurityContext,
--- validateSysctls), component-helpers/node/util/sysctl/namespace.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"

local M = {}

local NONE = {}
local ID_MAX = 2147483647
local SYSCTL_MAX = 253
local BAD_SYSCTL = ("must have at most %d characters and match regex "
  .. [[^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$]]):format(SYSCTL_MAX)

-- Kernel parameters that each namespace for IPC has of its own, beside all below fs.mqueue.
local IPC = {
  ["kernel.sem"] = true, ["kernel.shm"] = true, ["kernel.shmall"] = true, ["kernel.shmmax"] = true,
  ["kernel.shmmni"] = true, ["kernel.shm_rmid_forced"] = true, ["kernel.msg"] = true, ["kernel.msgmax"] = true,
  ["kernel.msgmnb"] = true, ["kernel.msgmni"] = true,
}


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


-- True if each part between dots and slashes is a word.
local function is_sysctl(name)
  for part in (name .. "."):gmatch "([^./]*)[./]" do
    if not (part:match "^[a-z0-9][-_a-z0-9]*$" and part:match "[a-z0-9]$") then
      return false
    end
  end
  return #name <= SYSCTL_MAX
end


--- The name of a sysctl with dots. One whose first separator is a slash has dots and slashes the other way round.
function M.with_dots(name)
  if name:match "[./]" == "/" then
    name = name:gsub("[./]", { ["."] = "/", ["/"] = "." })
  end
  return name
end


-- A pod cannot set what it shares with the machine.
local function check_shared(name, spec, path, errors)
  local dotted = M.with_dots(name)
  if spec.hostNetwork and dotted:find("net.", 1, true) == 1 then
    errors[#errors + 1] = field.invalid(path, name, "may not be specified when 'hostNetwork' is true")
  elseif spec.hostIPC and (IPC[dotted] or dotted:find("fs.mqueue.", 1, true) == 1) then
    errors[#errors + 1] = field.invalid(path, name, "may not be specified when 'hostIPC' is true")
  end
end


local function check_sysctls(sysctls, spec, path, errors)
  local seen = {}
  for i, sysctl in ipairs(sysctls) do
    local name, at = sysctl.name, ("%s[%d].name"):format(path, i - 1)
    if name == "" then
      errors[#errors + 1] = field.required(at, "")
    elseif not is_sysctl(name) then
      errors[#errors + 1] = field.invalid(at, name, BAD_SYSCTL)
    elseif seen[name] then
      errors[#errors + 1] = field.duplicate(at, name)
    end
    check_shared(name, spec, at, errors)
    seen[name] = true
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
  check_sysctls(context.sysctls or NONE, spec, path .. ".sysctls", errors)
  check.one_of(context.fsGroupChangePolicy, { "Always", "OnRootMismatch" }, path .. ".fsGroupChangePolicy", errors)
  check_profile(context.seccompProfile, path .. ".seccompProfile", errors)
  check.one_of(context.supplementalGroupsPolicy, { "Merge", "Strict" }, path .. ".supplementalGroupsPolicy", errors)
end


return M
