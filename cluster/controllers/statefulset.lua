--- StatefulSets: numbered pods, created and replaced one by one, each with its own claims.
---
--- Rules: kubernetes/pkg/controller/statefulset/{stateful_set_control,stateful_set_utils}.go.
local claims = require "cluster.controllers.statefulset_claims"
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local pods = require "cluster.controllers.pods"
local revisions = require "cluster.controllers.statefulset_revisions"
local statefulset_status = require "cluster.controllers.statefulset_status"

local M = {}

local POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


-- The ordinal in the name of a pod, or nil when it is not one of the set's.
local function ordinal_of(set, pod_name)
  local name = set.metadata.name
  local number = pod_name:sub(1, #name) == name and pod_name:sub(#name + 1):match "^%-(%d+)$"
  return number and math.tointeger(number) or nil
end


local function first_ordinal(set)
  return (set.spec.ordinals or {}).start or 0
end


local function rolling(set)
  return set.spec.updateStrategy.rollingUpdate
end


local function is_parallel(set)
  return set.spec.podManagementPolicy == "Parallel"
end


local function new_pod(set, ordinal, revision)
  local name = ("%s-%d"):format(set.metadata.name, ordinal)
  local pod = pods.from_template(revisions.template(revision), {
    [revisions.LABEL] = revision.metadata.name, [POD_NAME] = name, [POD_INDEX] = tostring(ordinal),
  })
  pod.metadata.name, pod.metadata.generateName = name, set.metadata.name .. "-"
  pod.spec.hostname = name
  pod.spec.subdomain = set.spec.serviceName
  local volumes, claimed = host.json.array {}, {}
  for i, template in ipairs(set.spec.volumeClaimTemplates or {}) do
    claimed[template.metadata.name] = true
    volumes[i] = {
      name = template.metadata.name,
      persistentVolumeClaim = { claimName = claims.name(template, set, ordinal) },
    }
  end
  for _, volume in ipairs(pod.spec.volumes or {}) do
    if not claimed[volume.name] then
      volumes[#volumes + 1] = volume
    end
  end
  pod.spec.volumes = #volumes > 0 and volumes or nil
  return pod
end


-- Does something to a pod and says how it went.
local function with_event(api, set, verb, pod_name, act)
  local ok, result = pcall(act)
  local what = ("%s Pod %s in StatefulSet %s"):format(verb, pod_name, set.metadata.name)
  if not ok then
    api.event(set, "Warning", "Failed" .. verb, ("%s failed error: %s"):format(what, result))
    error(result, 0)
  end
  api.event(set, "Normal", "Successful" .. verb, what .. " successful")
  return result
end


local function create(api, set, ordinal, revision)
  local pod = new_pod(set, ordinal, revision)
  with_event(api, set, "Create", pod.metadata.name, function()
    claims.ensure(api, set, ordinal)
    claims.own(api, set, api.create(pod, set), ordinal, false)
  end)
end


local function delete(api, set, pod)
  with_event(api, set, "Delete", pod.metadata.name, function()
    api.delete(pod)
  end)
end


-- Neither available nor going to stay.
local function is_unavailable(set, pod)
  return pod.metadata.deletionTimestamp ~= nil or not pods.is_available(pod, set.spec.minReadySeconds)
end


-- The pods that should be, by ordinal, those that should not, the highest first, and all of them.
local function sort_pods(api, set)
  local wanted, condemned, all = {}, {}, {}
  local first = first_ordinal(set)
  for _, pod in ipairs(api.owned(set, "", "v1", "pods", function(name) return ordinal_of(set, name) ~= nil end)) do
    local ordinal = ordinal_of(set, pod.metadata.name)
    if ordinal then
      all[#all + 1] = pod
    end
    if ordinal and ordinal >= first and ordinal < first + set.spec.replicas then
      wanted[ordinal] = pod
    elseif ordinal then
      condemned[#condemned + 1] = pod
    end
  end
  table.sort(condemned, function(a, b)
    return ordinal_of(set, a.metadata.name) > ordinal_of(set, b.metadata.name)
  end)
  return wanted, condemned, all
end


-- Which revision a new pod gets: below the partition, or without one as far as the update has not come, the current.
local function revision_for(set, ordinal, current, update)
  local count = 0
  if rolling(set) then
    count = rolling(set).partition or 0
  elseif set.spec.updateStrategy.type == "RollingUpdate" then
    count = (set.status or {}).currentReplicas or 0
  end
  return ordinal < first_ordinal(set) + count and current or update
end


-- A pod is found by its name in a label, which may have been taken away.
local function keep_identity(api, set, pod, ordinal)
  local name = pod.metadata.name
  if (pod.metadata.labels or {})[POD_NAME] ~= name then
    with_event(api, set, "Update", name, function()
      api.patch(pod, { metadata = { labels = { [POD_NAME] = name, [POD_INDEX] = tostring(ordinal) } } })
    end)
  end
  claims.own(api, set, pod, ordinal, false)
end


-- Looks after the pod that should be at an ordinal. @return boolean whether the next one may be looked at in order
local function fill_one(api, set, pod, ordinal, current, update)
  if not pod then
    if not claims.are_stale(api, set, ordinal) then
      create(api, set, ordinal, revision_for(set, ordinal, current, update))
    end
    return false
  end
  local phase = pod.status and pod.status.phase
  if phase == "Failed" or phase == "Succeeded" then
    if not pod.metadata.deletionTimestamp then
      delete(api, set, pod)
    end
    return false
  end
  if phase == "Pending" and not pod.metadata.deletionTimestamp then
    claims.ensure(api, set, ordinal)
  end
  if is_unavailable(set, pod) and not is_parallel(set) then
    return false
  end
  keep_identity(api, set, pod, ordinal)
  return true
end


-- Makes what is missing, in order, so many at once; what that changes brings the next look.
-- @return boolean whether what is too much may go now
local function fill(api, set, wanted, current, update)
  local first, missing = first_ordinal(set), 0
  for ordinal = first, first + set.spec.replicas - 1 do
    if not fill_one(api, set, wanted[ordinal], ordinal, current, update) and not is_parallel(set) then
      return false
    end
    missing = missing + (wanted[ordinal] and 0 or 1)
    if missing == pods.BURST_MAX then
      return false
    end
    host.give_way()
  end
  return true
end


-- Of those that go, the first that is not well: that one need not become so before it goes.
local function first_unavailable(set, condemned)
  for i = #condemned, 1, -1 do
    if is_unavailable(set, condemned[i]) then
      return condemned[i]
    end
  end
end


-- Takes away what is too much, from the end; in order, one at a time. @return boolean whether the update may go on
local function shrink(api, set, condemned)
  for _, pod in ipairs(condemned) do
    claims.own(api, set, pod, ordinal_of(set, pod.metadata.name), true)
  end
  local ailing = first_unavailable(set, condemned)
  for i, pod in ipairs(condemned) do
    if i > pods.BURST_MAX then
      return false
    end
    local waits = not is_parallel(set) and is_unavailable(set, pod) and pod ~= ailing
    if not pod.metadata.deletionTimestamp and not waits then
      delete(api, set, pod)
    end
    if not is_parallel(set) then
      return false
    end
  end
  return true
end


-- Renews one pod of an older revision, from the end down to the partition, when those above it are well.
local function renew(api, set, wanted, update)
  if set.spec.updateStrategy.type == "OnDelete" then
    return
  end
  local first = first_ordinal(set)
  local partition = (rolling(set) or {}).partition or 0
  for ordinal = first + set.spec.replicas - 1, first + partition, -1 do
    local pod = wanted[ordinal]
    if pod and revisions.of(pod) ~= update.metadata.name and not pod.metadata.deletionTimestamp then
      return delete(api, set, pod)
    elseif not pod or is_unavailable(set, pod) then
      return
    end
  end
end


local function reconcile(api, set)
  local update, known = revisions.ensure(api, set)
  local current = revisions.current(set, known, update)
  local wanted, condemned, all = sort_pods(api, set)
  local ok, why = true, nil
  if not set.metadata.deletionTimestamp then
    ok, why = pcall(function()
      if fill(api, set, wanted, current, update) and shrink(api, set, condemned) then
        renew(api, set, wanted, update)
      end
    end)
    all = select(3, sort_pods(api, set))
  end
  local status, again = statefulset_status.of(set, all, current, update)
  api.write_status(set, status)
  revisions.truncate(api, set, known, current, update, all)
  if not ok then
    error(why, 0)
  end
  return again
end


-- A claim that is gone may be one that a set waits for, or has to make again.
local function sets_beside(server, claim, is_gone)
  local keys = {}
  if is_gone then
    server.store:collection("statefulsets.apps"):each(claim.namespace, nil, function(entry)
      keys[#keys + 1] = entry.namespace .. "/" .. entry.name
    end)
  end
  return keys
end


--- Starts the controller.
function M.start(server)
  controller.start(server, {
    name = "statefulset-controller",
    kind = { "apps", "v1", "StatefulSet" },
    owns = { "pods" },
    maps = {
      persistentvolumeclaims = function(claim, _, is_gone)
        return sets_beside(server, claim, is_gone)
      end,
    },
    reconcile = reconcile,
  })
end


return M
