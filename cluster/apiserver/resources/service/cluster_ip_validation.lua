--- The rules for the cluster addresses of services and their families.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateServiceClusterIPsRelatedFields).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local ip = require "cluster.apiserver.resources.ip"

local M = {}

local NONE = {}


local function headless(spec)
  return spec.clusterIP == "None"
end


local function check_families(spec, errors)
  local seen = {}
  for i, family in ipairs(spec.ipFamilies or NONE) do
    local path = ("spec.ipFamilies[%d]"):format(i - 1)
    check.choice(family, { "IPv4", "IPv6" }, path, errors)
    if seen[family] then
      errors[#errors + 1] = field.duplicate(path, family)
    end
    seen[family] = true
  end
  check.one_of(spec.ipFamilyPolicy, { "PreferDualStack", "RequireDualStack", "SingleStack" }, "spec.ipFamilyPolicy",
    errors)
end


-- The two fields for one thing have to agree.
local function check_pair(spec, errors)
  local first, list = spec.clusterIP, spec.clusterIPs or NONE
  if not first then
    if #list > 0 then
      errors[#errors + 1] = field.invalid("spec.clusterIPs", list, "must be empty when `clusterIP` is not specified")
    end
  elseif #list == 0 then
    errors[#errors + 1] = field.required("spec.clusterIPs", "")
  elseif list[1] ~= first then
    errors[#errors + 1] = field.invalid("spec.clusterIPs", list, "first value must match `clusterIP`")
  end
end


-- @return boolean whether all are addresses
local function check_each(list, errors)
  local before = #errors
  for i, address in ipairs(list) do
    if i == 1 and address == "None" then
      if #list > 1 then
        errors[#errors + 1] = field.invalid("spec.clusterIPs", list, "'None' must be the first and only value")
      end
    else
      ip.check(address, ("spec.clusterIPs[%d]"):format(i - 1), errors)
    end
  end
  return #errors == before
end


local function check_match(spec, errors)
  for i, address in ipairs(spec.clusterIPs or NONE) do
    local family = (spec.ipFamilies or NONE)[i]
    if not headless(spec) and family and ip.family(address) ~= family then
      errors[#errors + 1] = field.invalid(("spec.clusterIPs[%d]"):format(i - 1), address,
        ("expected an %s value as indicated by `ipFamilies[%d]`"):format(family, i - 1))
    end
  end
end


--- The addresses of a service and their families. @return table field errors
function M.check(spec)
  local errors, list = {}, spec.clusterIPs or NONE
  if spec.type == "ExternalName" then
    return errors
  end
  check_pair(spec, errors)
  check_families(spec, errors)
  local good = check_each(list, errors)
  if #list > 2 then
    errors[#errors + 1] = field.invalid("spec.clusterIPs", list, "may only hold up to 2 values")
  end
  if not good then
    return errors
  end
  if #list == 2 and ip.family(list[1]) == ip.family(list[2]) then
    errors[#errors + 1] = field.invalid("spec.clusterIPs", list, "may specify no more than one IP for each IP family")
  end
  check_match(spec, errors)
  return errors
end


return M
