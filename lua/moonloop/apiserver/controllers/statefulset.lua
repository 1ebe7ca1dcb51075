--- StatefulSets: pods with numbers, made and renewed one after another, each with claims of its own.
---
--- Rules: kubernetes/pkg/controller/statefulset/{stateful_set_control,stateful_set_utils}.go.
local host = require "moonloop.host"
local pods = require "moonloop.apiserver.controllers.pods"
local runner = require "moonloop.apiserver.controllers.runner"

local M = {}

local REVISION = "controller-revision-hash"
local POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


local function ordinal_of(set, pod)
  local name = set.metadata.name
  local number = pod.metadata.name:sub(1, #name) == name and pod.metadata.name:sub(#name + 1):match "^%-(%d+)$"
  return number and math.tointeger(tonumber(number))
end


local function first_ordinal(set)
  return (set.spec.ordinals or {}).start or 0
end


local function revision_name(set, template)
  return set.metadata.name .. "-" .. pods.hash(template)
end


local function by_revision(a, b)
  return a.revision < b.revision
end


-- The ControllerRevision of the present template, made or renumbered when it is not the latest; and all, oldest first.
local function ensure_revision(api, set)
  local name = revision_name(set, set.spec.template)
  local all = api.owned(set, "apps", "v1", "controllerrevisions")
  table.sort(all, by_revision)
  local latest = all[#all]
  if latest and latest.metadata.name == name then
    return latest, all
  end
  local number = latest and latest.revision + 1 or 1
  for _, known in ipairs(all) do
    if known.metadata.name == name then
      return api.patch(known, { revision = number }), all
    end
  end
  local template = host.json.copy(set.spec.template)
  template["$patch"] = "replace"
  local made = api.create({
    apiVersion = "apps/v1",
    kind = "ControllerRevision",
    metadata = { name = name, labels = host.json.copy((set.spec.template.metadata or {}).labels or {}) },
    data = { spec = { template = template } },
    revision = number,
  }, set)
  all[#all + 1] = made
  return made, all
end


local function template_of(revision)
  local template = host.json.copy(revision.data.spec.template)
  template["$patch"] = nil
  return template
end


local function claim_name(claim, set, ordinal)
  return ("%s-%s-%d"):format(claim.metadata.name, set.metadata.name, ordinal)
end


-- The claims of one pod outlive it, and the set.
local function ensure_claims(api, set, ordinal)
  for _, claim in ipairs(set.spec.volumeClaimTemplates or {}) do
    local name = claim_name(claim, set, ordinal)
    if not api.get("", "v1", "persistentvolumeclaims", set.metadata.namespace, name) then
      local labels = host.json.copy((claim.metadata.labels or {}))
      for key, value in pairs(set.spec.selector.matchLabels or {}) do
        labels[key] = value
      end
      api.create {
        apiVersion = "v1",
        kind = "PersistentVolumeClaim",
        metadata = { name = name, namespace = set.metadata.namespace, labels = labels },
        spec = host.json.copy(claim.spec),
      }
    end
  end
end


local function new_pod(set, ordinal, revision)
  local name = ("%s-%d"):format(set.metadata.name, ordinal)
  local pod = pods.from_template(template_of(revision), {
    [REVISION] = revision.metadata.name, [POD_NAME] = name, [POD_INDEX] = tostring(ordinal),
  })
  pod.metadata.name, pod.metadata.generateName = name, set.metadata.name .. "-"
  pod.spec.hostname = name
  pod.spec.subdomain = set.spec.serviceName
  local volumes, claimed = host.json.array {}, {}
  for i, claim in ipairs(set.spec.volumeClaimTemplates or {}) do
    claimed[claim.metadata.name] = true
    volumes[i] = {
      name = claim.metadata.name,
      persistentVolumeClaim = { claimName = claim_name(claim, set, ordinal) },
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


local function create(api, set, ordinal, revision)
  ensure_claims(api, set, ordinal)
  local made = api.create(new_pod(set, ordinal, revision), set)
  api.event(set, "Normal", "SuccessfulCreate", ("create Pod %s in StatefulSet %s successful"):format(
    made.metadata.name, set.metadata.name))
end


local function delete(api, set, pod)
  api.delete(pod)
  api.event(set, "Normal", "SuccessfulDelete", ("delete Pod %s in StatefulSet %s successful"):format(
    pod.metadata.name, set.metadata.name))
end


local function is_healthy(pod)
  return pods.is_ready(pod) and not pod.metadata.deletionTimestamp
end


-- The pods that should be, by ordinal, and those that should not, the highest first.
local function sort_pods(api, set)
  local wanted, surplus = {}, {}
  local first = first_ordinal(set)
  for _, pod in ipairs(api.owned(set, "", "v1", "pods")) do
    local ordinal = ordinal_of(set, pod)
    if ordinal and ordinal >= first and ordinal < first + set.spec.replicas then
      wanted[ordinal] = pod
    elseif ordinal then
      surplus[#surplus + 1] = pod
    end
  end
  table.sort(surplus, function(a, b) return ordinal_of(set, a) > ordinal_of(set, b) end)
  return wanted, surplus
end


-- Which revision a new pod gets: below the partition, and until the update has reached it, the current one.
local function revision_for(set, ordinal, current, update)
  local rules = (set.spec.updateStrategy or {}).rollingUpdate
  local partition = rules and rules.partition or 0
  return ordinal < first_ordinal(set) + partition and current or update
end


-- Makes what is missing, in order. @return boolean whether all are there and healthy
local function fill(api, set, wanted, current, update)
  local in_order = set.spec.podManagementPolicy ~= "Parallel"
  local first, is_whole = first_ordinal(set), true
  for ordinal = first, first + set.spec.replicas - 1 do
    local pod = wanted[ordinal]
    if not pod then
      create(api, set, ordinal, revision_for(set, ordinal, current, update))
    elseif not pods.is_active(pod) and not pod.metadata.deletionTimestamp then
      delete(api, set, pod)
    end
    if not pod or not is_healthy(pod) then
      is_whole = false
      if in_order then
        return false
      end
    end
  end
  return is_whole
end


-- Takes away what is too much: one at a time, from the end. @return boolean whether something is
local function shrink(api, set, surplus)
  for _, pod in ipairs(surplus) do
    if not pod.metadata.deletionTimestamp then
      delete(api, set, pod)
    end
    if set.spec.podManagementPolicy ~= "Parallel" then
      return true
    end
  end
  return #surplus > 0
end


-- Renews one pod of an older revision, from the end, down to the partition.
local function renew(api, set, wanted, update)
  local strategy = set.spec.updateStrategy or {}
  if strategy.type == "OnDelete" then
    return
  end
  local first = first_ordinal(set)
  local partition = strategy.rollingUpdate and strategy.rollingUpdate.partition or 0
  for ordinal = first + set.spec.replicas - 1, first + partition, -1 do
    local pod = wanted[ordinal]
    if pod.metadata.labels[REVISION] ~= update.metadata.name then
      return delete(api, set, pod)
    end
  end
end


local function some(count)
  return count > 0 and count or nil
end


local function status_of(set, wanted, surplus, current, update)
  local all, ready, available, updated, on_current, again = { table.unpack(surplus) }, 0, 0, 0, 0, nil
  for _, pod in pairs(wanted) do
    all[#all + 1] = pod
  end
  for _, pod in ipairs(all) do
    local revision = pod.metadata.labels[REVISION]
    local is_available, left = pods.is_available(pod, set.spec.minReadySeconds)
    ready = ready + (pods.is_ready(pod) and 1 or 0)
    available = available + (is_available and 1 or 0)
    if not pod.metadata.deletionTimestamp then
      updated = updated + (revision == update.metadata.name and 1 or 0)
      on_current = on_current + (revision == current.metadata.name and 1 or 0)
    end
    if left and left > 0 then
      again = math.min(left, again or left)
    end
  end
  local is_done = updated == set.spec.replicas and ready == set.spec.replicas and #all == set.spec.replicas
  local reached = is_done and update or current
  return {
    observedGeneration = set.metadata.generation,
    replicas = #all,
    readyReplicas = some(ready),
    availableReplicas = available,
    currentReplicas = some(is_done and updated or on_current),
    updatedReplicas = some(updated),
    currentRevision = reached.metadata.name,
    updateRevision = update.metadata.name,
    collisionCount = 0,
  }, again
end


local function current_of(set, revisions, update)
  for _, revision in ipairs(revisions) do
    if revision.metadata.name == (set.status or {}).currentRevision then
      return revision
    end
  end
  return update
end


local function reconcile(api, set)
  local update, revisions = ensure_revision(api, set)
  local current = current_of(set, revisions, update)
  local wanted, surplus = sort_pods(api, set)
  if not set.metadata.deletionTimestamp then
    local is_whole = fill(api, set, wanted, current, update)
    if is_whole or set.spec.podManagementPolicy == "Parallel" then
      local shrinks = shrink(api, set, surplus)
      if is_whole and not shrinks then
        renew(api, set, wanted, update)
      end
    end
    wanted, surplus = sort_pods(api, set)
  end
  local status, again = status_of(set, wanted, surplus, current, update)
  api.write_status(set, status)
  return again
end


--- Starts the controller.
function M.start(server)
  runner.start(server, {
    name = "statefulset-controller",
    kind = { "apps", "v1", "StatefulSet" },
    owns = { "pods" },
    reconcile = reconcile,
  })
end


return M
