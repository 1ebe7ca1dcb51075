--- The names of what can be requested, limited and counted: cpu, requests.memory, count/jobs.batch, example.com/gpu.
---
--- Rules: kubernetes/pkg/apis/core/helper/helpers.go, pkg/apis/core/validation/validation.go (validateResourceName and
--- its neighbours).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"

local M = {}

local OF_CONTAINERS = check.set { "cpu", "memory", "ephemeral-storage" }
local COUNTED = check.set {
  "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
  "services.loadbalancers", "services.nodeports",
}
local COMPUTED = check.set {
  "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage", "limits.cpu", "limits.memory",
  "limits.ephemeral-storage",
}


local function has_domain(name)
  return name:find("/", 1, true) ~= nil
end


--- Memory in pages of one size.
function M.is_huge(name)
  return name:find("^hugepages%-") ~= nil
end


--- Returns true if a name belongs to Kubernetes: it has no domain, or one of kubernetes.io.
function M.is_native(name)
  return not has_domain(name) or name:find("kubernetes.io/", 1, true) ~= nil
end


--- A resource of others than Kubernetes.
function M.is_extended(name)
  return not M.is_native(name) and not name:find("^requests%.") and not names.qualified("requests." .. name)
end


--- Returns true if more of the resource can be promised than there is.
function M.may_overcommit(name)
  return M.is_native(name) and not M.is_huge(name)
end


--- Returns true if the resource only comes in whole pieces.
function M.is_whole(name)
  return COUNTED[name] or M.is_extended(name)
end


--- A name that a quota can limit by itself.
function M.is_of_quota(name)
  return OF_CONTAINERS[name] or COUNTED[name] or COMPUTED[name] or M.is_huge(name)
    or name:find("^requests%.hugepages%-") ~= nil
end


--- A name has to be known, or to have a domain.
function M.check(name, path, errors)
  local messages = names.qualified(name)
  if messages then
    check.each(errors, path, name, messages)
  elseif not has_domain(name) and name ~= "storage" and not M.is_of_quota(name) then
    errors[#errors + 1] = field.invalid(path, name, "must be a standard resource type or fully qualified")
  end
end


--- A name of something that containers can have.
function M.check_container(name, path, errors)
  M.check(name, path, errors)
  if not has_domain(name) then
    if not OF_CONTAINERS[name] and not M.is_huge(name) then
      errors[#errors + 1] = field.invalid(path, name, "must be a standard resource for containers")
    end
  elseif not M.is_native(name) and not M.is_extended(name) then
    errors[#errors + 1] = field.invalid(path, name, "doesn't follow extended resource name standard")
  end
end


--- A name of something that a quota can limit.
function M.check_quota(name, path, errors)
  M.check(name, path, errors)
  if not has_domain(name) and not M.is_of_quota(name) then
    errors[#errors + 1] = field.invalid(path, name, "must be a standard resource for quota")
  end
end


return M
