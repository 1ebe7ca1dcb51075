--- Deployments: a ReplicaSet for each pod template, replicas moved from the old ones to the newest.
---
--- Rules: kubernetes/pkg/controller/deployment/{sync,rolling,recreate,progress}.go and util/deployment_util.go.
local controller = require "cluster.controllers.controller"
local deployment_status = require "cluster.controllers.deployment_status"
local host = require "cluster.host"
local pods = require "cluster.controllers.pods"
local rolling = require "cluster.controllers.rolling"
local scaling = require "cluster.controllers.scaling"

local M = {}

local REVISION = "deployment.kubernetes.io/revision"
local HASH = "pod-template-hash"

-- Annotations of a Deployment that its ReplicaSets do not get.
local OWN = {
  ["kubectl.kubernetes.io/last-applied-configuration"] = true,
  [REVISION] = true, [scaling.DESIRED] = true, [scaling.MAXIMUM] = true, ["deprecated.deployment.rollback.to"] = true,
}


local function revision_of(object)
  return tonumber((object.metadata.annotations or {})[REVISION]) or 0
end


local function same_template(set, deployment)
  local template = host.json.copy(set.spec.template)
  if template.metadata and template.metadata.labels then
    template.metadata.labels[HASH] = nil
  end
  return host.json.equal(template, deployment.spec.template)
end


local function older_first(a, b)
  if a.metadata.creationTimestamp ~= b.metadata.creationTimestamp then
    return a.metadata.creationTimestamp < b.metadata.creationTimestamp
  end
  return a.metadata.name < b.metadata.name
end


-- The ReplicaSet of the present template, or nil; the others, oldest first; the highest revision.
local function sort_sets(sets, deployment)
  table.sort(sets, older_first)
  local newest, old, revision = nil, {}, 0
  for _, set in ipairs(sets) do
    if not newest and same_template(set, deployment) then
      newest = set
    else
      old[#old + 1] = set
      revision = math.max(revision, revision_of(set))
    end
  end
  return newest, old, revision
end


local function annotations_for(deployment, revision)
  local annotations = {}
  for key, value in pairs(deployment.metadata.annotations or {}) do
    if not OWN[key] then
      annotations[key] = value
    end
  end
  annotations[REVISION] = tostring(revision)
  annotations[scaling.DESIRED] = tostring(deployment.spec.replicas)
  annotations[scaling.MAXIMUM] = tostring(deployment.spec.replicas + rolling.limits(deployment).surge)
  return annotations
end


local function new_set(deployment, revision)
  local template, hash = host.json.copy(deployment.spec.template), pods.hash(deployment.spec.template)
  local selector = host.json.copy(deployment.spec.selector)
  template.metadata.labels[HASH] = hash
  selector.matchLabels = selector.matchLabels or {}
  selector.matchLabels[HASH] = hash
  return {
    apiVersion = "apps/v1",
    kind = "ReplicaSet",
    metadata = {
      name = deployment.metadata.name .. "-" .. hash,
      labels = host.json.copy(template.metadata.labels),
      annotations = annotations_for(deployment, revision),
    },
    spec = {
      replicas = 0, -- until it is known how many there may be
      minReadySeconds = deployment.spec.minReadySeconds,
      selector = selector,
      template = template,
    },
  }
end


local function tell_scaling(api, deployment, set, before, replicas)
  if before ~= replicas then
    api.event(deployment, "Normal", "ScalingReplicaSet", ("Scaled %s replica set %s from %d to %d"):format(
      before < replicas and "up" or "down", set.metadata.name, before, replicas))
  end
end


-- Gives a set its number of replicas. @return table the set as it is then
local function scale(api, deployment, set, replicas)
  local before = set.spec.replicas
  local annotations = annotations_for(deployment, revision_of(set))
  local changed = api.patch(set, { metadata = { annotations = annotations }, spec = { replicas = replicas } })
  tell_scaling(api, deployment, set, before, replicas)
  return changed
end


-- Makes the set of the current template, with its number of replicas from the start: others may read it at once.
local function create_newest(api, deployment, old, highest)
  local set = new_set(deployment, highest + 1)
  set.spec.replicas = rolling.newest_replicas(deployment, set, old)
  local newest = api.create(set, deployment)
  newest.apiVersion, newest.kind = "apps/v1", "ReplicaSet"
  local message = ("Created new replica set %q"):format(newest.metadata.name)
  deployment_status.note(deployment, "NewReplicaSetCreated", message)
  tell_scaling(api, deployment, newest, 0, newest.spec.replicas)
  return newest
end


-- The newest set, made when it is not there, with its revision and that of the deployment kept.
local function ensure_newest(api, deployment, newest, old, highest)
  if not newest then
    newest = create_newest(api, deployment, old, highest)
  elseif revision_of(newest) <= highest then
    local annotations = annotations_for(deployment, highest + 1)
    newest = api.patch(newest, { metadata = { annotations = annotations } })
  end
  local revision = newest.metadata.annotations[REVISION]
  if (deployment.metadata.annotations or {})[REVISION] ~= revision then
    local status = deployment.status
    local patched = api.patch(deployment, { metadata = { annotations = { [REVISION] = revision } } })
    deployment.metadata, deployment.status = patched.metadata, status
  end
  return newest
end


-- Recreate: nothing new as long as anything old is left.
local function recreate(api, deployment, newest, old, highest)
  local waits = false
  for _, set in ipairs(old) do
    if set.spec.replicas > 0 then
      scale(api, deployment, set, 0)
    end
    waits = waits or set.spec.replicas > 0 or (set.status.replicas or 0) > 0
      or (set.status.terminatingReplicas or 0) > 0
  end
  if waits then
    return newest
  end
  newest = ensure_newest(api, deployment, newest, old, highest)
  if newest.spec.replicas ~= deployment.spec.replicas then
    newest = scale(api, deployment, newest, deployment.spec.replicas)
  end
  return newest
end


local function roll(api, deployment, newest, old, highest)
  newest = ensure_newest(api, deployment, newest, old, highest)
  local wanted = rolling.newest_replicas(deployment, newest, old)
  if wanted ~= newest.spec.replicas then
    return scale(api, deployment, newest, wanted)
  end
  for _, change in ipairs(rolling.old_replicas(deployment, newest, old)) do
    scale(api, deployment, change.set, change.replicas)
  end
  return newest
end


-- A paused deployment, or one whose number has changed, keeps its templates where they are.
local function scale_all(api, deployment, newest, old)
  for _, change in ipairs(scaling.changes(deployment, newest, old)) do
    local scaled = scale(api, deployment, change.set, change.replicas)
    newest = change.set == newest and scaled or newest
  end
  return newest
end


local function is_idle(set)
  return set.spec.replicas == 0 and (set.status.replicas or 0) == 0 and not set.metadata.deletionTimestamp
end


-- Deletes what is beyond spec.revisionHistoryLimit, the oldest first.
local function trim_history(api, deployment, old)
  local limit, idle = deployment.spec.revisionHistoryLimit or 10, {}
  for _, set in ipairs(old) do
    if is_idle(set) then
      idle[#idle + 1] = set
    end
  end
  table.sort(idle, function(a, b)
    local one, other = revision_of(a), revision_of(b)
    return one < other or one == other and older_first(a, b)
  end)
  for i = 1, #idle - limit do
    api.delete(idle[i])
  end
end


local function reconcile(api, deployment)
  local sets = api.owned(deployment, "apps", "v1", "replicasets")
  local newest, old, highest = sort_sets(sets, deployment)
  deployment.status = deployment.status or {}
  local before = host.json.copy(deployment.status)
  if deployment.metadata.deletionTimestamp then
    return deployment_status.write(api, deployment, before, newest, old)
  end
  deployment_status.note_pause(deployment)
  if deployment.spec.paused or scaling.is_due(deployment, newest, old) then
    newest = scale_all(api, deployment, newest, old)
  elseif deployment.spec.strategy.type == "Recreate" then
    newest = recreate(api, deployment, newest, old, highest)
  else
    newest = roll(api, deployment, newest, old, highest)
  end
  local again, is_complete = deployment_status.write(api, deployment, before, newest, old)
  if is_complete then
    trim_history(api, deployment, old)
  end
  return again
end


--- Starts the controller.
function M.start(server)
  controller.start(server, {
    name = "deployment-controller",
    kind = { "apps", "v1", "Deployment" },
    owns = { "replicasets.apps" },
    reconcile = reconcile,
  })
end


return M
