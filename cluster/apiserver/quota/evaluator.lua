--- Computes how much an object uses of a quota: { pods = "1", ["requests.cpu"] = "500m" }.
---
--- Rules: kubernetes/pkg/quota/v1/evaluator/core/{pods,services,persistent_volume_claims,registry}.go,
--- apiserver/pkg/quota/v1/generic/evaluator.go.
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"
local lists = require "cluster.apiserver.resources.resource_lists"
local quantity = require "cluster.quantity"
local resource_names = require "cluster.apiserver.resources.resource_names"
local totals = require "cluster.apiserver.resources.pod.totals"

local M = {}

local NONE = {}
-- Resources whose plural counts them, as "count/…" does.
local ALIASED = { configmaps = true, resourcequotas = true, replicationcontrollers = true, secrets = true }
local COMPUTE = { "cpu", "memory", "ephemeral-storage" }
local CLASS = ".storageclass.storage.k8s.io/"
local CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
local IGNORED = { events = true }


--- The name that counts the objects of a resource: "count/jobs.batch".
function M.count_name(id)
  return "count/" .. id
end


-- True if a pod still counts as running: it has not ended, and its time to be deleted has not passed.
local function is_counted(pod)
  local status, meta = pod.status or NONE, pod.metadata
  if status.phase == "Succeeded" or status.phase == "Failed" then
    return false
  elseif meta.deletionTimestamp and meta.deletionGracePeriodSeconds then
    return host.now() <= instant.read(meta.deletionTimestamp)
  end
  return true
end


-- Requests and limits by the names that quotas have for them.
local function computed(requests, limits)
  local usage = {}
  for _, name in ipairs(COMPUTE) do
    usage[name], usage["requests." .. name] = requests[name], requests[name]
    usage["limits." .. name] = limits[name]
  end
  for name, text in pairs(requests) do
    if resource_names.is_huge(name) then
      usage[name], usage["requests." .. name] = text, text
    elseif resource_names.is_extended(name) then
      usage["requests." .. name] = text
    end
  end
  return usage
end


local function of_pod(pod)
  if not is_counted(pod) then
    return { ["count/pods"] = "1" }
  end
  local spec, overhead = pod.spec, pod.spec.overhead
  local limits = totals.limits(spec)
  lists.add(limits, lists.mask(overhead or NONE, limits))
  local usage = computed(lists.add(totals.requests(spec), overhead), limits)
  usage["count/pods"], usage.pods = "1", "1"
  return usage
end


local function of_service(service)
  local spec = service.spec
  local usage = {
    ["count/services"] = "1", services = "1", ["services.loadbalancers"] = "0", ["services.nodeports"] = "0",
  }
  local ports = type(spec.ports) == "table" and spec.ports or NONE
  if spec.type == "NodePort" then
    usage["services.nodeports"] = tostring(#ports)
  elseif spec.type == "LoadBalancer" then
    usage["services.loadbalancers"] = "1"
    local count = #ports
    if spec.allocateLoadBalancerNodePorts == false then
      count = 0
      for _, port in ipairs(ports) do
        count = count + ((port.nodePort or 0) ~= 0 and 1 or 0)
      end
    end
    usage["services.nodeports"] = tostring(count)
  end
  return usage
end


-- An amount of bytes, rounded up to whole bytes.
local function whole(text)
  local amount = quantity.parse(text)
  return amount and quantity.write(quantity.whole(amount)) or text
end


local function of_claim(claim)
  local usage = { ["count/persistentvolumeclaims"] = "1", persistentvolumeclaims = "1" }
  local class = (claim.metadata.annotations or NONE)[CLASS_ANNOTATION] or claim.spec.storageClassName or ""
  local size = ((claim.spec.resources or NONE).requests or NONE).storage
  local allocated = (claim.status or NONE).allocatedResources
  if size and allocated and allocated.storage and lists.compare(allocated.storage, size) > 0 then
    size = allocated.storage
  end
  usage["requests.storage"] = size and whole(size)
  if class ~= "" then
    usage[class .. CLASS .. "persistentvolumeclaims"] = "1"
    usage[class .. CLASS .. "requests.storage"] = usage["requests.storage"]
  end
  return usage
end


local OF = { pods = of_pod, services = of_service, persistentvolumeclaims = of_claim }


--- Returns the names and amounts that an object of the resource `id` uses.
function M.of(id, object)
  if OF[id] then
    return OF[id](object)
  end
  local usage = { [M.count_name(id)] = "1" }
  usage[id] = ALIASED[id] and "1" or nil
  return usage
end


local POD_NAMES, SERVICE_NAMES = { pods = true }, {
  services = true, ["services.loadbalancers"] = true, ["services.nodeports"] = true,
}
for _, name in ipairs(COMPUTE) do
  POD_NAMES[name], POD_NAMES["requests." .. name], POD_NAMES["limits." .. name] = true, true, true
end


local TRACKS = {
  pods = function(name)
    return POD_NAMES[name] or name:find("^hugepages%-") or name:find("^requests%.hugepages%-")
      or name:find("^requests%.") and not resource_names.is_native(name)
  end,
  services = function(name) return SERVICE_NAMES[name] end,
  persistentvolumeclaims = function(name)
    return name == "persistentvolumeclaims" or name == "requests.storage"
      or name:find(CLASS .. "persistentvolumeclaims", 1, true) or name:find(CLASS .. "requests.storage", 1, true)
  end,
}


--- Returns the names in `hard` that objects of the resource `id` use, as a set.
function M.tracked(id, hard)
  local set, tracks, count = {}, TRACKS[id], M.count_name(id)
  for name in pairs(IGNORED[id] and NONE or hard or NONE) do
    if name == count or ALIASED[id] and name == id or tracks and tracks(name) then
      set[name] = true
    end
  end
  return set
end


--- Checks that each container of a pod sets these names, which a quota limits. @return string|nil what is missing
function M.missing(pod, names)
  if pod.spec.resources and next(pod.spec.resources) then
    return nil
  end
  local containers = {}   -- name of a resource → set of containers
  for _, list in ipairs { "containers", "initContainers" } do
    for _, container in ipairs(pod.spec[list] or NONE) do
      local resources = container.resources or NONE
      local usage = computed(resources.requests or NONE, resources.limits or NONE)
      for _, name in ipairs { "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory" } do
        if names[name] and not usage[name] then
          containers[name] = containers[name] or {}
          containers[name][container.name] = true
        end
      end
    end
  end
  local parts = {}
  for name, set in pairs(containers) do
    local list = {}
    for container in pairs(set) do
      list[#list + 1] = container
    end
    table.sort(list)
    parts[#parts + 1] = name .. " for: " .. table.concat(list, ",")
  end
  table.sort(parts)
  return parts[1] and "must specify " .. table.concat(parts, "; ")
end


return M
