--- Claims of devices that a pod names, and those that its containers use. Nothing here allocates devices: such a pod
--- waits (kubelet/init.lua).
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (validatePodResourceClaims, validateResourceClaimNames).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"

local M = {}

local SOURCES = { "resourceClaimName", "resourceClaimTemplateName" }
local NONE = {}


local function check_source(claim, path, errors)
  local both = claim.resourceClaimName and claim.resourceClaimTemplateName
  if both or not (claim.resourceClaimName or claim.resourceClaimTemplateName) then
    errors[#errors + 1] = check.invalid_text(path, check.go_struct {
      { "Name", claim.name }, { "ResourceClaimName", claim.resourceClaimName },
      { "ResourceClaimTemplateName", claim.resourceClaimTemplateName },
    }, both and "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
      or "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
  end
  for _, name in ipairs(SOURCES) do
    if claim[name] then
      check.each(errors, path .. "." .. name, claim[name], names.subdomain(claim[name]))
    end
  end
end


--- spec.resourceClaims.
function M.validate(spec, path, errors)
  local seen = {}
  for i, claim in ipairs(spec.resourceClaims or NONE) do
    local at = ("%s.resourceClaims[%d]"):format(path, i - 1)
    if claim.name == "" then
      errors[#errors + 1] = field.required(at .. ".name", "")
    elseif seen[claim.name] then
      errors[#errors + 1] = field.duplicate(at .. ".name", claim.name)
    else
      check.each(errors, at .. ".name", claim.name, names.label(claim.name))
    end
    seen[claim.name] = true
    check_source(claim, at, errors)
  end
end


-- A claim as a whole, and each request of it, once.
local function check_once(claim, used, path, errors)
  local name, request = claim.name, claim.request or ""
  if used[name] then
    errors[#errors + 1] = field.duplicate(path, name)
    return
  elseif request ~= "" then
    check.each(errors, path .. ".request", request, names.label(request))
  end
  local key = request ~= "" and name .. "/" .. request or name
  if used[key] then
    errors[#errors + 1] = field.duplicate(path, key)
  end
  for other in pairs(request == "" and used or NONE) do
    if other:sub(1, #name + 1) == name .. "/" then
      errors[#errors + 1] = field.duplicate(path, name)
    end
  end
  used[key] = true
end


local function check_container(container, known, path, errors)
  local used, sorted = {}, check.sorted_keys(known)
  for i, claim in ipairs(container.resources and container.resources.claims or NONE) do
    local at = ("%s.resources.claims[%d]"):format(path, i - 1)
    if claim.name == "" then
      errors[#errors + 1] = field.required(at, "")
    else
      check_once(claim, used, at, errors)
    end
    if claim.name ~= "" and not known[claim.name] then
      local wrong = field.not_found(at, claim.name)
      wrong.detail = "must be one of the names in pod.spec.resourceClaims"
        .. (sorted[1] and ": " .. table.concat(sorted, ", ") or " which is empty")
      errors[#errors + 1] = wrong
    end
  end
end


--- Checks the claims that containers use.
function M.validate_containers(spec, path, errors)
  local known = {}
  for _, claim in ipairs(spec.resourceClaims or NONE) do
    known[claim.name] = claim.name ~= "" or nil
  end
  for _, name in ipairs { "containers", "initContainers" } do
    for i, container in ipairs(check.list(spec[name])) do
      check_container(container, known, ("%s.%s[%d]"):format(path, name, i - 1), errors)
    end
  end
end


return M
