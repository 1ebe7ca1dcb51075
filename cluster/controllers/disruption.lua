--- PodDisruptionBudgets: counts which pods are healthy, and how many may go.
---
--- Rules: kubernetes/pkg/controller/disruption/disruption.go.
local controller = require "cluster.controllers.controller"
local disruptions = require "cluster.apiserver.resources.disruptions"
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"
local pods = require "cluster.controllers.pods"
local selectors = require "cluster.apiserver.resources.selectors"

local M = {}

local BUDGETS = "poddisruptionbudgets.policy"
-- A pod that was evicted is believed to go for so long.
local DELETION_SECONDS = 120


local function controller_of(object)
  for _, owner in ipairs(object.metadata.ownerReferences or {}) do
    if owner.controller then
      return owner
    end
  end
end


-- The object that a reference means, or nil when there is none of its uid.
local function resolve(server, namespace, owner)
  local res = server.registry:of(owner.apiVersion, owner.kind)
  local entry = res and server.store:get(res.id, namespace, owner.name)
  return entry and entry.uid == owner.uid and server.store.object(res, entry) or nil, res
end


-- How many pods the controller of a pod wants, and its uid. nil and why nobody knows
local function scale_of(server, pod, owner)
  local namespace = pod.metadata.namespace
  local object, res = resolve(server, namespace, owner)
  local above = object and object.kind == "ReplicaSet" and controller_of(object)
  if above and above.kind == "Deployment" then
    object, res = resolve(server, namespace, above)
  end
  if not object or not res.subresources.scale then
    return nil, ("found no controllers for pod %q"):format(pod.metadata.name)
  end
  local code, scale = server:call("GET", server.registry.path(res, namespace, object.metadata.name, "scale"))
  return code == 200 and (scale.spec.replicas or 0) or 0, object.metadata.uid
end


-- How many pods all their controllers want together. @return integer|nil; nil and why nobody knows
-- @return boolean|nil whether there are pods without a controller
local function expected_scale(server, list)
  local scales, sum, unmanaged = {}, 0, false
  for _, pod in ipairs(list) do
    local owner = controller_of(pod)
    if not owner then
      unmanaged = true
    elseif not scales[owner.uid] then
      local replicas, uid = scale_of(server, pod, owner)
      if not replicas then
        return nil, uid
      end
      sum = sum + (scales[uid] and 0 or replicas)
      scales[uid], scales[owner.uid] = true, true
    end
  end
  return sum, unmanaged
end


-- A number, or a share of `total` rounded up.
local function resolve_number(value, total)
  local share = type(value) == "string" and value:match "^(%d+)%%$"
  return share and math.ceil(tonumber(share) * total / 100) or math.tointeger(value) or 0
end


-- How many pods there should be, and how many of them healthy. @return integer|nil; nil and why nobody knows
local function expectations(server, spec, list)
  if spec.maxUnavailable == nil and math.type(spec.minAvailable) == "integer" then
    return #list, spec.minAvailable, false
  elseif spec.maxUnavailable == nil and spec.minAvailable == nil then
    return 0, 0, false
  end
  local total, unmanaged = expected_scale(server, list)
  if not total then
    return nil, unmanaged
  elseif spec.maxUnavailable ~= nil then
    return total, math.max(total - resolve_number(spec.maxUnavailable, total), 0), unmanaged
  end
  return total, resolve_number(spec.minAvailable, total), unmanaged
end


local function pods_of(server, budget)
  local list, selector = {}, budget.spec.selector
  local res = server.registry:find("", "v1", "pods")
  server.store:collection("pods"):each(budget.metadata.namespace, nil, function(entry)
    if selector and selectors.matches(selector, entry.labels) then
      list[#list + 1] = server.store.object(res, entry)
    end
  end)
  return list
end


-- The pods that were evicted and are still there, name → when; and in how many seconds the first of them is given up.
local function disrupted(budget, list, now)
  local known, still_disrupted, again = (budget.status or {}).disruptedPods or {}, {}, nil
  for _, pod in ipairs(list) do
    local since = known[pod.metadata.name]
    local seconds_left = since and not pod.metadata.deletionTimestamp and instant.read(since) + DELETION_SECONDS - now
    if seconds_left and seconds_left > 0 then
      still_disrupted[pod.metadata.name], again = since, math.min(seconds_left, again or seconds_left)
    end
  end
  return still_disrupted, again
end


local function healthy(list, going)
  local count = 0
  for _, pod in ipairs(list) do
    if not pod.metadata.deletionTimestamp and not going[pod.metadata.name] and pods.is_ready(pod) then
      count = count + 1
    end
  end
  return count
end


-- Nobody knows how many pods there should be: none may go.
local function fail(api, budget, why)
  api.event(budget, "Warning", "CalculateExpectedPodCountFailed",
    "Failed to calculate the number of expected pods: " .. why)
  local status = host.json.copy(budget.status)
  status.disruptionsAllowed, status.observedGeneration = 0, budget.metadata.generation
  disruptions.set_condition(status)
  for _, condition in ipairs(status.conditions) do
    if condition.type == "DisruptionAllowed" then
      condition.reason, condition.message = "SyncFailed", why
    end
  end
  api.write_status(budget, status)
end


local function reconcile(server, api, budget)
  if budget.metadata.deletionTimestamp then
    return nil
  end
  local list = pods_of(server, budget)
  local expected, desired, unmanaged = expectations(server, budget.spec, list)
  if not expected then
    return fail(api, budget, desired)
  end
  local observed = (budget.status or {}).observedGeneration
  if unmanaged and observed ~= budget.metadata.generation then
    api.event(budget, "Warning", "UnmanagedPods",
      "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB "
        .. "cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
        .. 'set ".spec.minAvailable" field of the PDB to an integer value.')
  elseif #list == 0 and observed ~= budget.metadata.generation then
    api.event(budget, "Normal", "NoPods", "No matching pods found")
  end
  local going, again = disrupted(budget, list, host.now())
  local current = healthy(list, going)
  local status = {
    currentHealthy = current, desiredHealthy = desired, expectedPods = expected,
    disruptionsAllowed = expected > 0 and math.max(current - desired, 0) or 0,
    disruptedPods = next(going) and going or nil, observedGeneration = budget.metadata.generation,
    conditions = budget.status and host.json.copy(budget.status.conditions or host.json.array {}),
  }
  disruptions.set_condition(status)
  api.write_status(budget, status)
  return again
end


--- Starts the controller.
function M.start(server)
  -- The budgets of the namespace in which something changed that they count.
  local function neighbours(entry)
    local keys, collection = {}, server.store.collections[BUDGETS]
    if collection and collection:size(entry.namespace) > 0 then
      collection:each(entry.namespace, nil, function(budget)
        keys[#keys + 1] = budget.namespace .. "/" .. budget.name
      end)
    end
    return keys
  end
  controller.start(server, {
    name = "disruption-controller", kind = { "policy", "v1", "PodDisruptionBudget" },
    maps = {
      pods = neighbours, replicationcontrollers = neighbours, ["replicasets.apps"] = neighbours,
      ["deployments.apps"] = neighbours, ["statefulsets.apps"] = neighbours,
    },
    reconcile = function(api, budget)
      return reconcile(server, api, budget)
    end,
  })
end


return M
