--- Checks the status of a pod's devices: the claims that were made for it, and the health of its devices.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (validatePodResourceClaimStatuses,
--- validatePodExtendedResourceClaimStatus, validateContainerStatusAllocatedResourcesStatus).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"

local M = {}

local CLAIM, MESSAGE_MAX = "claim:", 1024
local HEALTH = { "Healthy", "Unhealthy", "Unknown" }
local NOT_A_CLAIM = "must match the name of an entry in `spec.resourceClaims`"
local NOT_USED = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
  .. "'claim:<claimName>' if request is empty"
local NOT_REQUESTED = "must match one of the container's resource requests"
local NO_CONTAINER = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
local NOT_EXTENDED = "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
  .. "spec.containers.resources.requests"
local NO_EPHEMERAL = "must not be specified in container status"
local NONE = {}


local function by_name(list, map)
  for _, item in ipairs(list or NONE) do
    map[item.name] = item
  end
  return map
end


local function check_claims(statuses, spec, path, errors)
  local known, seen = by_name(spec.resourceClaims, {}), {}
  for i, status in ipairs(statuses or NONE) do
    local at, made = ("%s[%d]"):format(path, i - 1), status.resourceClaimName
    if not known[status.name] then
      errors[#errors + 1] = field.invalid(at .. ".name", status.name, NOT_A_CLAIM)
    end
    if seen[status.name] then
      errors[#errors + 1] = field.duplicate(at .. ".name", status.name)
    end
    seen[status.name] = true
    if made then
      check.each(errors, at .. ".resourceClaimName", made, names.subdomain(made))
    end
  end
end


local function requests_of(container)
  return container.resources and container.resources.requests or NONE
end


local function check_mapping(mapping, containers, seen, at, path, errors)
  local container, request = containers[mapping.containerName], mapping.requestName
  if not container then
    errors[#errors + 1] = field.invalid(at .. ".containerName", mapping.containerName, NO_CONTAINER)
  elseif not requests_of(container)[mapping.resourceName] then
    errors[#errors + 1] = field.invalid(at .. ".resourceName", mapping.resourceName, NOT_EXTENDED)
  end
  check.each(errors, path .. ".requestName", request, names.label(request))
  local key = table.concat({ mapping.containerName, mapping.resourceName, request }, "\0")
  for _, name in ipairs(seen[key] and { "containerName", "resourceName", "requestName" } or NONE) do
    errors[#errors + 1] = field.duplicate(at .. "." .. name, mapping[name])
  end
  seen[key] = true
end


-- The claim that was made for requests of extended resources.
local function check_extended(status, spec, path, errors)
  local containers, seen = by_name(spec.containers, by_name(spec.initContainers, {})), {}
  local mappings, name = check.list(status.requestMappings), status.resourceClaimName
  if #mappings == 0 then
    errors[#errors + 1] = field.required(path .. ".requestMappings", "at least one request mapping is required")
  end
  for i, mapping in ipairs(mappings) do
    check_mapping(mapping, containers, seen, ("%s.requestMappings[%d]"):format(path, i - 1), path, errors)
  end
  if name == "" then
    errors[#errors + 1] = field.required(path .. ".resourceClaimName", "")
  else
    check.each(errors, path .. ".resourceClaimName", name, names.subdomain(name))
  end
end


local function uses(container, name)
  for _, claim in ipairs(container.resources and container.resources.claims or NONE) do
    local request = claim.request or ""
    if CLAIM .. claim.name .. (request ~= "" and "/" .. request or "") == name then
      return true
    end
  end
  return false
end


local function check_health(list, path, errors)
  local seen = {}
  for i, resource in ipairs(list or NONE) do
    local at, message = ("%s[%d]"):format(path, i - 1), resource.message
    check.choice(resource.health or "", HEALTH, at .. ".health", errors)
    if message == "" then
      errors[#errors + 1] = field.required(at .. ".message", "must be non-empty if specified")
    elseif message and #message > MESSAGE_MAX then
      errors[#errors + 1] = field.too_long(at .. ".message", "", MESSAGE_MAX)
    end
    if seen[resource.resourceID] then
      errors[#errors + 1] = field.duplicate(at .. ".resourceID", resource.resourceID)
    end
    seen[resource.resourceID] = true
  end
end


-- The names of resources are only checked for containers that the pod has.
local function check_containers(statuses, containers, path, errors)
  local known = by_name(containers, {})
  for i, status in ipairs(statuses or NONE) do
    local container = known[status.name]
    for j, resource in ipairs(status.allocatedResourcesStatus or NONE) do
      local at = ("%s[%d].allocatedResourcesStatus[%d]"):format(path, i - 1, j - 1)
      local is_claim = resource.name:sub(1, #CLAIM) == CLAIM
      if container and is_claim and not uses(container, resource.name) then
        errors[#errors + 1] = field.invalid(at .. ".name", resource.name, NOT_USED)
      elseif container and not is_claim and not requests_of(container)[resource.name] then
        errors[#errors + 1] = field.invalid(at .. ".name", resource.name, NOT_REQUESTED)
      end
      check_health(resource.resources, at .. ".resources", errors)
    end
  end
end


--- Checks the claims that a pod got.
function M.check_claims(pod, errors)
  local status, spec = pod.status, pod.spec
  check_claims(status.resourceClaimStatuses, spec, "status.resourceClaimStatuses", errors)
  if status.extendedResourceClaimStatus then
    check_extended(status.extendedResourceClaimStatus, spec, "status.extendedResourceClaimStatus", errors)
  end
end


--- Checks the health of the resources that its containers got.
function M.check_health(pod, errors)
  local status, spec = pod.status, pod.spec
  check_containers(status.containerStatuses, spec.containers, "status.containerStatuses", errors)
  check_containers(status.initContainerStatuses, spec.initContainers, "status.initContainerStatuses", errors)
  for i, container in ipairs(status.ephemeralContainerStatuses or NONE) do
    if #check.list(container.allocatedResourcesStatus) > 0 then
      errors[#errors + 1] = field.forbidden(
        ("status.ephemeralContainerStatuses[%d].allocatedResourcesStatus"):format(i - 1), NO_EPHEMERAL)
    end
  end
end


return M
