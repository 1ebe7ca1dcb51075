--- The few changes that a pod allows; some of them only through its subresources.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidatePodUpdate, ValidatePodStatusUpdate,
--- ValidatePodEphemeralContainersUpdate).
local check = require "cluster.apiserver.resources.check"
local device_statuses = require "cluster.apiserver.resources.pod.device_statuses"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local ip = require "cluster.apiserver.resources.ip"
local restarts = require "cluster.restarts"
local spec_rules = require "cluster.apiserver.resources.pod.spec"

local M = {}

local NONE = {}
local ONLY = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
  .. "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
  .. "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
local SECONDS_MAX = 2147483647


local function same(a, b)
  return host.json.equal(a == nil and host.json.null or a, b == nil and host.json.null or b)
end


-- @return boolean whether containers were added or removed, after which nothing else is looked at
local function check_containers(new, old, path, errors)
  if #(new or NONE) ~= #(old or NONE) then
    errors[#errors + 1] = field.forbidden(path, "pod updates may not add or remove containers")
    return true
  end
  for i, container in ipairs(new or NONE) do
    if not container.image then
      errors[#errors + 1] = field.required(("%s[%d].image"):format(path, i - 1), "")
    end
  end
  return false
end


-- @return boolean whether the deadline is so wrong that nothing else is looked at
local function check_deadline(new, old, errors)
  local path = "spec.activeDeadlineSeconds"
  if not new then
    if old then
      errors[#errors + 1] = field.invalid(path, host.json.null, "must not update from a positive integer to nil value")
    end
    return false
  elseif new < 0 or new > SECONDS_MAX then
    errors[#errors + 1] = field.invalid(path, new, ("must be between 0 and %d, inclusive"):format(SECONDS_MAX))
    return true
  elseif old and old < new then
    errors[#errors + 1] = field.invalid(path, new, "must be less than or equal to previous value")
    return true
  end
  return false
end


local function has_toleration(list, wanted)
  for _, toleration in ipairs(list or NONE) do
    local copy = host.json.copy(wanted)
    copy.tolerationSeconds = toleration.tolerationSeconds
    if host.json.equal(copy, toleration) then
      return true
    end
  end
  return false
end


local function check_tolerations(new, old, errors)
  for _, toleration in ipairs(old or NONE) do
    if not has_toleration(new, toleration) then
      errors[#errors + 1] = field.forbidden("spec.tolerations",
        "existing toleration can not be modified except its tolerationSeconds")
      return
    end
  end
end


local function check_gates(new, old, errors)
  local known = {}
  for _, gate in ipairs(old or NONE) do
    known[gate.name] = true
  end
  for i, gate in ipairs(new or NONE) do
    if not known[gate.name] then
      errors[#errors + 1] = field.forbidden(("spec.schedulingGates[%d].name"):format(i - 1),
        ("only deletion is allowed, but found new scheduling gate '%s'"):format(gate.name))
    end
  end
end


-- The new spec with what may change as it was before.
local function with_changeable_of(new, old)
  local spec = host.json.copy(new)
  for _, name in ipairs { "containers", "initContainers" } do
    for i, container in ipairs(spec[name] or NONE) do
      container.image = old[name][i].image
    end
  end
  spec.activeDeadlineSeconds = old.activeDeadlineSeconds
  spec.schedulingGates = old.schedulingGates
  spec.tolerations = old.tolerations
  if (old.terminationGracePeriodSeconds or 0) < 0 and spec.terminationGracePeriodSeconds == 1 then
    spec.terminationGracePeriodSeconds = old.terminationGracePeriodSeconds
  end
  return spec
end


-- A gated pod may still be told more about where it may go.
local function check_gated(spec, old, errors)
  if not old.schedulingGates or same(spec.nodeSelector, old.nodeSelector) then
    return
  end
  for key, value in pairs(old.nodeSelector or NONE) do
    if (spec.nodeSelector or NONE)[key] ~= value then
      errors[#errors + 1] = field.invalid("spec.nodeSelector", spec.nodeSelector or host.json.null,
        "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
      break
    end
  end
  spec.nodeSelector = old.nodeSelector
end


--- The main update. @return table field errors
function M.validate(new, old)
  local errors, spec, before = {}, new.spec, old.spec
  spec_rules.validate_pod(spec, "spec", errors)
  if check_containers(spec.containers, before.containers, "spec.containers", errors)
    or check_containers(spec.initContainers, before.initContainers, "spec.initContainers", errors)
    or check_deadline(spec.activeDeadlineSeconds, before.activeDeadlineSeconds, errors) then
    return errors
  end
  check_tolerations(spec.tolerations, before.tolerations, errors)
  check_gates(spec.schedulingGates, before.schedulingGates, errors)
  if host.json.equal(spec, before) then
    return errors
  end
  local rest = with_changeable_of(spec, before)
  check_gated(rest, before, errors)
  if not host.json.equal(rest, before) then
    errors[#errors + 1] = field.forbidden("spec", ONLY)
  end
  return errors
end


local function check_addresses(list, key, path, errors)
  for i, entry in ipairs(list or NONE) do
    ip.check(entry[key] or "", ("%s[%d]"):format(path, i - 1), errors)
  end
end


-- The containers of a pod by their names, or nil if a rule of one may start them all again.
local function by_name(spec)
  local known = {}
  for _, list in ipairs { spec.initContainers or NONE, spec.containers } do
    for _, container in ipairs(list) do
      if restarts.starts_all(container) then
        return nil
      end
    end
  end
  for _, container in ipairs(spec.containers) do
    known[container.name] = container
  end
  return known
end


-- A container that has ended may only run again if its rules, its restartPolicy or that of its pod start it again.
local function check_states(new, old, path, spec, errors)
  local known = by_name(spec)
  for i, before in ipairs(known and old or NONE) do
    local state = before.state and before.state.terminated
    for _, after in ipairs(state and new or NONE) do
      local ended, container = after.state and after.state.terminated, known[before.name]
      local is_allowed = container and restarts.follows(container, spec.restartPolicy, state.exitCode)
      if after.name == before.name and not ended and not is_allowed then
        errors[#errors + 1] = field.forbidden(("%s[%d].state"):format(path, i - 1),
          "may not be transitioned to non-terminated state")
      end
    end
  end
end


--- An update of the status. @return table field errors
function M.validate_status(new, old)
  local errors, status, before = {}, new.status, old.status
  if (status.observedGeneration or 0) < 0 then
    errors[#errors + 1] = field.invalid("status.observedGeneration", status.observedGeneration,
      "must be a non-negative integer")
  end
  check.immutable_value(status.qosClass, before.qosClass, "status.qosClass", errors)
  check_states(status.containerStatuses, before.containerStatuses, "status.containerStatuses", old.spec, errors)
  device_statuses.check_claims(new, errors)
  check_addresses(status.podIPs, "ip", "status.podIPs", errors)
  check_addresses(status.hostIPs, "ip", "status.hostIPs", errors)
  device_statuses.check_health(new, errors)
  return errors
end


--- An update of the ephemeral containers: there can only be more of them. @return table field errors
function M.validate_ephemeral(new, old)
  local errors, known = {}, {}
  spec_rules.validate_pod(new.spec, "spec", errors)
  for _, container in ipairs(new.spec.ephemeralContainers or NONE) do
    known[container.name] = container
  end
  for _, container in ipairs(old.spec.ephemeralContainers or NONE) do
    local after = known[container.name]
    if not after then
      errors[#errors + 1] = field.forbidden("spec.ephemeralContainers",
        ('existing ephemeral containers "%s" may not be removed\n'):format(container.name))
    elseif not host.json.equal(after, container) then
      errors[#errors + 1] = field.forbidden("spec.ephemeralContainers",
        ('existing ephemeral containers "%s" may not be changed'):format(container.name))
    end
  end
  return errors
end


return M
