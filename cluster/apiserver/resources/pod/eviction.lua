--- Evictions of pods: deletions that a PodDisruptionBudget may refuse.
---
--- Rules and wordings: kubernetes/pkg/registry/core/pod/storage/eviction.go.
local body = require "cluster.apiserver.verbs.body"
local disruptions = require "cluster.apiserver.resources.disruptions"
local host = require "cluster.host"
local options = require "cluster.apiserver.verbs.options"
local parts = require "cluster.apiserver.resources.pod.parts"
local selectors = require "cluster.apiserver.resources.selectors"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"

local NONE = {}
local EVICTION = body.kind("policy", "v1", "Eviction", "policy/v1beta1")
local PDB = { api_version = "policy/v1", kind = "PodDisruptionBudget" }
local ENDED = { Succeeded = true, Failed = true, Pending = true }
local RETRY_SECONDS = 10
local DISRUPTED_MAX = 2000


-- The budgets that protect a pod.
local function budgets_of(request, pod)
  local list = {}
  request.server.store:collection("poddisruptionbudgets.policy"):each(request.namespace, nil, function(entry)
    local budget = store.object(PDB, entry)
    local selector = budget.spec.selector
    if selector and selectors.matches(selector, pod.metadata.labels) then
      list[#list + 1] = budget
    end
  end)
  return list
end


local function too_many(message, reason, why)
  local failure = status.too_many_requests(message, nil)
  failure.details = { causes = host.json.array { { reason = reason, message = why } },
    retryAfterSeconds = RETRY_SECONDS }
  return failure
end


local VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
local TOO_BIG = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"


-- Returns why a budget allows no disruption.
local function reason_of(budget)
  local name, state, not_allowed = budget.metadata.name, budget.status, nil
  for _, condition in ipairs(state.conditions or NONE) do
    not_allowed = condition.type == "DisruptionAllowed" and condition.status == "False" and condition or not_allowed
  end
  local message = not_allowed and not_allowed.message ~= "" and not_allowed.message
  if message and not_allowed.reason == "SyncFailed" then
    return ("The disruption budget %s does not allow evicting pods currently because it failed sync: %s"):format(
      name, message)
  elseif state.currentHealthy <= state.desiredHealthy then
    return ("The disruption budget %s needs %d healthy pods and has %d currently"):format(
      name, state.desiredHealthy, state.currentHealthy)
  end
  return ("The disruption budget %s does not allow evicting pods currently"):format(name)
    .. (message and (" (%s): %s"):format(not_allowed.reason, message) or "")
end


local function count(map)
  local number = 0
  for _ in pairs(map or NONE) do
    number = number + 1
  end
  return number
end


-- Asks a budget to let the pod go. @return table|nil failure
local function ask_budget(budget)
  local name, state = budget.metadata.name, budget.status
  if (state.observedGeneration or 0) < budget.metadata.generation then
    return too_many(VIOLATES, "DisruptionBudget",
      ("The disruption budget %s is still being processed by the server."):format(name))
  elseif state.disruptionsAllowed == 0 then
    return too_many(VIOLATES, "DisruptionBudget", reason_of(budget))
  elseif count(state.disruptedPods) > DISRUPTED_MAX then
    return status.forbidden({ group = "policy", plural = "poddisruptionbudget" }, name, TOO_BIG)
  end
end


-- True if the pod is not ready and the budget does not count it.
local function goes_unhealthy(budget, pod)
  for _, condition in ipairs(pod.status.conditions or NONE) do
    if condition.type == "Ready" and condition.status == "True" then
      return false
    end
  end
  local state = budget.status
  return budget.spec.unhealthyPodEvictionPolicy == "AlwaysAllow"
    or state.currentHealthy >= state.desiredHealthy and state.desiredHealthy > 0
end


-- Takes one disruption from a budget, for the pod of that name.
local function charge(request, budget, name)
  local state = budget.status
  state.disruptionsAllowed = state.disruptionsAllowed - 1
  if state.disruptionsAllowed == 0 then
    disruptions.set_condition(state)
  end
  state.disruptedPods = state.disruptedPods or {}
  state.disruptedPods[name] = host.timestamp()
  request.server:call("PUT", ("/apis/policy/v1/namespaces/%s/poddisruptionbudgets/%s/status"):format(
    request.namespace, budget.metadata.name), budget, { user_agent = "kube-apiserver" })
end


-- @return table|nil failure
local function protect(request, pod, is_dry)
  if ENDED[pod.status.phase] or pod.metadata.deletionTimestamp then
    return nil
  end
  local budgets = budgets_of(request, pod)
  local budget = budgets[1]
  if #budgets > 1 then
    return status.unknown(
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
  elseif not budget or goes_unhealthy(budget, pod) then
    return nil
  end
  local failure = ask_budget(budget)
  if not failure and not is_dry then
    charge(request, budget, pod.metadata.name)
  end
  return failure
end


-- Says in a pod's status why it goes.
local function note_eviction(request, entry, pod)
  local conditions = pod.status.conditions or host.json.array {}
  pod.status.conditions = conditions
  local condition = {
    type = "DisruptionTarget", status = "True", reason = "EvictionByEvictionAPI", message = "Eviction API: evicting",
    lastProbeTime = host.json.null, lastTransitionTime = host.timestamp(),
  }
  for i, other in ipairs(conditions) do
    if other.type == condition.type then
      conditions[i] = condition
      return request.server.store:update(request.res, entry, pod)
    end
  end
  conditions[#conditions + 1] = condition
  return request.server.store:update(request.res, entry, pod)
end


local function evict(request)
  local settings, failure = options.create(request)
  if not settings then
    return nil, failure
  end
  local eviction
  eviction, failure = parts.read(request, settings, EVICTION)
  if not eviction then
    return nil, failure
  end
  local entry, pod
  entry, pod, failure = parts.find(request)
  if not entry then
    return nil, failure
  end
  local deletion = eviction.deleteOptions
  local is_dry = request.query.dryRun ~= nil or deletion ~= nil and deletion.dryRun ~= nil
  failure = parts.admit(request, eviction, "policy", { dry_run = is_dry }) or protect(request, pod, is_dry)
  if failure then
    return nil, failure
  end
  if not is_dry and not (deletion and deletion.preconditions) and not pod.metadata.deletionTimestamp then
    note_eviction(request, entry, pod)
  end
  local query = request.query.dryRun and "?dryRun=" .. request.query.dryRun[1] or ""
  local path = ("/api/v1/namespaces/%s/pods/%s%s"):format(request.namespace, request.name, query)
  local code, answer = request.server:call("DELETE", path, deletion, { skips_admission = true })
  if code >= 300 then
    return nil, answer
  end
  return parts.success()
end


return { create = evict }
