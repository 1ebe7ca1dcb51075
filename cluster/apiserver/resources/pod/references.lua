--- Where variables and files of a pod take their values from: fields of the pod, resources, keys of other objects.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (validateObjectFieldSelector and its neighbours).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local quantity = require "cluster.quantity"

local M = {}

--- Fields that a variable can take, as messages list them.
M.env_fields = {
  "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
  "status.hostIPs", "status.podIP", "status.podIPs",
}
--- Fields that a file can take.
M.file_fields = { "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid" }

local RESOURCES = {
  "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
  "requests.memory",
}
local SIZES = { "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei" }
local SIZES_ONLY = "only divisor's values " .. table.concat(SIZES, ", ") .. " are supported with the %s resource"
-- By resource: its divisors, and what is said of others.
local DIVISORS = {
  cpu = { { "1m", "1" }, "only divisor's values 1m and 1 are supported with the cpu resource" },
  memory = { SIZES, SIZES_ONLY:format "memory" },
  ["ephemeral-storage"] = { SIZES, SIZES_ONLY:format "local ephemeral storage" },
  hugepages = { SIZES, SIZES_ONLY:format "hugepages" },
}
local SUBSCRIPTED = { ["metadata.annotations"] = true, ["metadata.labels"] = true }


local function is_one_of(value, list)
  for _, other in ipairs(list) do
    if value == other then
      return true
    end
  end
  return false
end


-- Paths that a pod has at all, for one of the two uses.
local function known(path)
  return is_one_of(path, M.env_fields) or is_one_of(path, M.file_fields)
end


local function check_subscript(path, subscript, at, errors)
  if path == "metadata.annotations" then
    check.each(errors, at, subscript:lower(), names.qualified(subscript:lower()))
  else
    check.each(errors, at, subscript, names.qualified(subscript))
  end
end


--- A field of the pod. `fields`: those of this use.
function M.field_ref(selector, fields, at, errors)
  local path = selector.fieldPath
  if path == "" then
    errors[#errors + 1] = field.required(at .. ".fieldPath", "")
    return
  elseif selector.apiVersion ~= "v1" then
    errors[#errors + 1] = field.invalid(at .. ".fieldPath", path,
      "error converting fieldPath: unsupported pod version: " .. selector.apiVersion)
    return
  end
  local base, subscript = path:match("^(.-)%['(.*)'%]$")
  if base and SUBSCRIPTED[base] then
    check_subscript(base, subscript, at, errors)
  elseif base or not known(path) then
    errors[#errors + 1] = field.invalid(at .. ".fieldPath", path,
      "error converting fieldPath: field label not supported: " .. path)
  elseif not is_one_of(path, fields) then
    errors[#errors + 1] = field.not_supported(at .. ".fieldPath", path, fields)
  end
end


local function check_divisor(selector, at, errors)
  local resource = selector.resource:match "^requests%.(.+)$" or selector.resource:match "^limits%.(.+)$" or ""
  local rule = DIVISORS[resource:match "^hugepages%-" and "hugepages" or resource]
  local divisor = quantity.canonical(selector.divisor or 0)
  if rule and divisor ~= "0" and not is_one_of(divisor, rule[1]) then
    errors[#errors + 1] = field.invalid(at .. ".divisor", selector.resource, rule[2])
  end
end


--- A resource of a container. `in_file`: the container has to be named.
function M.resource_ref(selector, in_file, at, errors)
  local resource = selector.resource
  if in_file and not selector.containerName then
    errors[#errors + 1] = field.required(at .. ".containerName", "")
  elseif resource == "" then
    errors[#errors + 1] = field.required(at .. ".resource", "")
  elseif not is_one_of(resource, RESOURCES) and not resource:find "^requests%.hugepages%-"
    and not resource:find "^limits%.hugepages%-" then
    errors[#errors + 1] = field.not_supported(at .. ".resource", resource, RESOURCES)
  end
  check_divisor(selector, at, errors)
end


--- A key of a ConfigMap or Secret.
function M.key_ref(selector, at, errors)
  local name = selector.name or ""
  check.each(errors, at .. ".name", name, names.subdomain(name))
  if selector.key == "" then
    errors[#errors + 1] = field.required(at .. ".key", "")
  else
    check.config_key(selector.key, at .. ".key", errors)
  end
end


return M
