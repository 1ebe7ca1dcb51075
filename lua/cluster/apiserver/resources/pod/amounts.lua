--- The requests and limits of containers.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (validateResourceRequirements),
--- pkg/apis/core/helper/helpers.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.apiserver.names"
local quantity = require "cluster.apiserver.quantity"

local M = {}

local NONE = {}
local OF_CONTAINERS = { cpu = true, memory = true, ["ephemeral-storage"] = true }
-- Those that are known, but not of containers.
local STANDARD = {
  storage = true, pods = true, services = true, replicationcontrollers = true, resourcequotas = true, secrets = true,
  configmaps = true, persistentvolumeclaims = true, ["requests.cpu"] = true, ["requests.memory"] = true,
  ["requests.storage"] = true, ["requests.ephemeral-storage"] = true, ["limits.cpu"] = true, ["limits.memory"] = true,
  ["limits.ephemeral-storage"] = true, ["services.loadbalancers"] = true, ["services.nodeports"] = true,
}
local ZERO = { value = 0, scale = 0 }


local function is_huge(name)
  return name:find("^hugepages%-") ~= nil
end


local function has_domain(name)
  return name:find("/", 1, true) ~= nil
end


-- Resources of others than Kubernetes.
local function is_extended(name)
  return has_domain(name) and not name:find("kubernetes.io/", 1, true) and not name:find("^requests%.")
end


-- What can be promised more often than it is there.
local function may_overcommit(name)
  return not is_extended(name) and not is_huge(name)
end


local function check_name(name, path, errors)
  local messages = names.qualified(name)
  if messages then
    check.each(errors, path, name, messages)
  end
  if not has_domain(name) then
    if OF_CONTAINERS[name] or is_huge(name) then
      return
    elseif not messages and not STANDARD[name] then
      errors[#errors + 1] = field.invalid(path, name, "must be a standard resource type or fully qualified")
    end
    errors[#errors + 1] = field.invalid(path, name, "must be a standard resource for containers")
  elseif not name:find("kubernetes.io/", 1, true) and not is_extended(name) then
    errors[#errors + 1] = field.invalid(path, name, "doesn't follow extended resource name standard")
  end
end


-- @return table|nil amount
local function check_amount(name, text, path, errors)
  check_name(name, path, errors)
  local amount = quantity.parse(text)
  if not amount then
    return nil
  end
  if quantity.compare(amount, ZERO) < 0 then
    errors[#errors + 1] = field.invalid(path, text, "must be greater than or equal to 0")
  end
  if is_extended(name) and not quantity.is_whole(amount) then
    errors[#errors + 1] = field.invalid(path, text, "must be an integer")
  end
  return amount
end


local function check_request(name, text, limits, path, errors)
  local amount = check_amount(name, text, path .. ".requests[" .. name .. "]", errors)
  local limit = limits[name] and quantity.parse(limits[name])
  if not limit then
    if not may_overcommit(name) then
      errors[#errors + 1] = field.required(path .. ".limits", "Limit must be set for non overcommitable resources")
    end
    return
  end
  local difference = amount and quantity.compare(amount, limit) or 0
  local why
  if difference ~= 0 and not may_overcommit(name) then
    why = "must be equal to %s limit of %s"
  elseif difference > 0 then
    why = "must be less than or equal to %s limit of %s"
  end
  if why then
    errors[#errors + 1] = field.invalid(path .. ".requests", text, why:format(name, limits[name]))
  end
end


--- resources of a container.
function M.validate(resources, path, errors)
  local limits, requests = resources.limits or NONE, resources.requests or NONE
  local huge, others = false, false
  for _, name in ipairs(check.sorted_keys(limits)) do
    check_amount(name, limits[name], path .. ".limits[" .. name .. "]", errors)
    huge, others = huge or is_huge(name), others or name == "cpu" or name == "memory"
  end
  for _, name in ipairs(check.sorted_keys(requests)) do
    check_request(name, requests[name], limits, path, errors)
    huge, others = huge or is_huge(name), others or name == "cpu" or name == "memory"
  end
  if huge and not others then
    errors[#errors + 1] = field.forbidden(path, "HugePages require cpu or memory")
  end
end


return M
