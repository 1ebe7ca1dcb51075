--- Checks that the kinds of storage.k8s.io share.
---
--- Rules: kubernetes/pkg/apis/storage/validation/validation.go, pkg/apis/core/validation/validation.go
--- (ValidateCSIDriverName).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"

local M = {}

local PARAMETERS_MAX, PARAMETERS_SIZE_MAX = 512, 262144
local DRIVER_MAX = 63


--- The name of what makes volumes.
function M.check_provisioner(name, path, errors)
  if name == "" then
    errors[#errors + 1] = field.required(path, "")
  else
    check.each(errors, path, name:lower(), names.qualified(name:lower()))
  end
end


--- Bytes of keys and values.
function M.size_of(map)
  local size = 0
  for key, value in pairs(map or {}) do
    size = size + #key + #value
  end
  return size
end


--- parameters, texts by name. @param may_be_empty boolean
function M.check_parameters(parameters, may_be_empty, errors)
  local keys = check.sorted_keys(parameters)
  if #keys > PARAMETERS_MAX then
    errors[#errors + 1] = field.too_long("parameters", "", PARAMETERS_MAX)
    return
  end
  if keys[1] == "" then
    errors[#errors + 1] = field.invalid("parameters", "", "field can not be empty.")
  end
  if M.size_of(parameters) > PARAMETERS_SIZE_MAX then
    errors[#errors + 1] = field.too_long("parameters", "", PARAMETERS_SIZE_MAX)
  end
  if not may_be_empty and #keys == 0 then
    errors[#errors + 1] = field.required("parameters", "must contain at least one key/value pair")
  end
end


--- The name of a CSI driver.
function M.check_driver(name, path, errors)
  if name == "" then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  if #name > DRIVER_MAX then
    errors[#errors + 1] = field.too_long(path, "", DRIVER_MAX)
  end
  check.each(errors, path, name, names.subdomain(name:lower()))
end


return M
