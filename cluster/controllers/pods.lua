--- Functions on pods, for controllers. Rules: kubernetes/pkg/api/v1/pod/util.go, pkg/controller/controller_utils.go.
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"

local M = {}

--- Pods that one look of a controller makes, or deletes, at most: BurstReplicas of ReplicaSets and DaemonSets,
--- MaxPodCreateDeletePerSync of Jobs. The next look follows at once.
M.BURST_MAX = 500


--- Neither finished nor about to go.
function M.is_active(pod)
  local phase = pod.status and pod.status.phase
  return phase ~= "Succeeded" and phase ~= "Failed" and not pod.metadata.deletionTimestamp
end


--- Deleted, but not over yet.
function M.is_terminating(pod)
  local phase = pod.status and pod.status.phase
  return phase ~= "Succeeded" and phase ~= "Failed" and pod.metadata.deletionTimestamp ~= nil
end


--- The condition Ready, or nil.
function M.ready_condition(pod)
  for _, condition in ipairs(pod.status and pod.status.conditions or {}) do
    if condition.type == "Ready" then
      return condition
    end
  end
end


function M.is_ready(pod)
  local condition = M.ready_condition(pod)
  return condition ~= nil and condition.status == "True"
end


--- Ready for `seconds` at least; the second result says in how many seconds a ready pod will be.
function M.is_available(pod, seconds)
  if not M.is_ready(pod) then
    return false
  end
  if not seconds or seconds == 0 then
    return true
  end
  local seconds_left = instant.read(M.ready_condition(pod).lastTransitionTime) + seconds - host.now()
  return seconds_left <= 0, seconds_left
end


local function rank_of(pod)
  local phase = pod.status and pod.status.phase
  return (not pod.spec.nodeName and 0 or 1) + (phase == "Running" and 2 or 0) + (M.is_ready(pod) and 4 or 0)
end


--- Sorts pods by which goes first: unstarted before running, unready before ready, younger before older.
function M.sort_by_departure(list)
  local ranks = {}
  for _, pod in ipairs(list) do
    ranks[pod] = rank_of(pod)
  end
  table.sort(list, function(a, b)
    if ranks[a] ~= ranks[b] then
      return ranks[a] < ranks[b]
    end
    if a.metadata.creationTimestamp ~= b.metadata.creationTimestamp then
      return a.metadata.creationTimestamp > b.metadata.creationTimestamp
    end
    return a.metadata.name > b.metadata.name
  end)
end


--- Creates a pod for its owner, whose Events tell of it, and of what was refused.
function M.create(api, pod, owner)
  local ok, made = pcall(api.create, pod, owner)
  if not ok then
    api.event(owner, "Warning", "FailedCreate", "Error creating: " .. tostring(made))
    error(made, 0)
  end
  api.event(owner, "Normal", "SuccessfulCreate", "Created pod: " .. made.metadata.name)
  return made
end


local ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

--- A pod from a template. The name is the caller's to set.
function M.from_template(template, labels)
  local pod = { apiVersion = "v1", kind = "Pod", metadata = {}, spec = host.json.copy(template.spec) }
  local meta = template.metadata or {}
  pod.metadata.labels = host.json.copy(meta.labels or {})
  pod.metadata.annotations = meta.annotations and host.json.copy(meta.annotations)
  pod.metadata.finalizers = meta.finalizers and host.json.copy(meta.finalizers)
  for key, value in pairs(labels or {}) do
    pod.metadata.labels[key] = value
  end
  return pod
end


--- A short hash of a template, in the letters of generated names.
function M.hash(template)
  local digest, text = host.sha256(host.json.encode(template)), {}
  for i = 1, 10 do
    local at = tonumber(digest:sub(2 * i - 1, 2 * i), 16) % #ALPHABET + 1
    text[i] = ALPHABET:sub(at, at)
  end
  return table.concat(text)
end


return M
