--- How the ReplicaSets of a Deployment share a new number of replicas: in the middle of a roll-out, by their size. Only
--- arithmetic, nothing is written.
---
--- Rules: kubernetes/pkg/controller/deployment/sync.go (scale, isScalingEvent) and util/deployment_util.go
--- (FindActiveOrLatest, IsSaturated, GetReplicaSetProportion), pkg/controller/controller_utils.go (ReplicaSetsBySize…).
local rolling = require "cluster.controllers.rolling"

local M = {}

--- Annotations of ReplicaSets: the Deployment's replicas when they were scaled, and how many it may have had with its
--- surge.
M.DESIRED = "deployment.kubernetes.io/desired-replicas"
M.MAXIMUM = "deployment.kubernetes.io/max-replicas"


local function annotation(set, name)
  return math.tointeger(tonumber((set.metadata.annotations or {})[name]))
end


-- The sets that have replicas, or should.
local function active_of(newest, old)
  local active = {}
  for _, set in ipairs(old) do
    active[#active + 1] = set.spec.replicas > 0 and set or nil
  end
  active[#active + 1] = newest and newest.spec.replicas > 0 and newest or nil
  return active
end


--- Returns true if a set was scaled for another number of replicas than the Deployment has now.
function M.is_due(deployment, newest, old)
  for _, set in ipairs(active_of(newest, old)) do
    local desired = annotation(set, M.DESIRED)
    if desired and desired ~= deployment.spec.replicas then
      return true
    end
  end
  return false
end


local function is_saturated(deployment, newest)
  local wanted = deployment.spec.replicas
  return newest and annotation(newest, M.DESIRED) == wanted and newest.spec.replicas == wanted
    and newest.status.availableReplicas == wanted
end


-- The largest first; among equals, the newest when replicas come and the oldest when they go.
local function by_size(is_growing)
  return function(a, b)
    if a.spec.replicas ~= b.spec.replicas then
      return a.spec.replicas > b.spec.replicas
    end
    local one, other = a.metadata.creationTimestamp .. a.metadata.name, b.metadata.creationTimestamp .. b.metadata.name
    if is_growing then
      return one > other
    end
    return one < other
  end
end


local function round(x)
  return x < 0 and math.ceil(x - 0.5) or math.floor(x + 0.5)
end


-- By how much a set changes, so that it is as large a part of the whole as before.
local function fraction(deployment, set, maximum)
  local before = annotation(set, M.MAXIMUM) or (deployment.status or {}).replicas or 0
  if deployment.spec.replicas == 0 then
    return -set.spec.replicas
  elseif before == 0 then
    return 0
  end
  return round(set.spec.replicas * maximum / before) - set.spec.replicas
end


-- Gives each set its share; the largest also gets or loses the difference that rounding leaves.
local function shares(deployment, active)
  local wanted, total = deployment.spec.replicas, 0
  for _, set in ipairs(active) do
    total = total + set.spec.replicas
  end
  local maximum = wanted > 0 and wanted + rolling.limits(deployment).surge or 0
  local missing, added, changes = maximum - total, 0, {}
  table.sort(active, by_size(missing > 0))
  for i, set in ipairs(active) do
    local share = missing ~= 0 and fraction(deployment, set, maximum) or 0
    share = missing > 0 and math.min(share, missing - added) or math.max(share, missing - added)
    added = added + share
    changes[i] = { set = set, replicas = set.spec.replicas + share }
  end
  changes[1].replicas = math.max(0, changes[1].replicas + missing - added)
  return changes
end


--- Returns how many replicas each set should have. @return table list of { set =, replicas = }
function M.changes(deployment, newest, old)
  local active = active_of(newest, old)
  if #active < 2 then
    local only = active[1] or newest or old[#old]
    return only and only.spec.replicas ~= deployment.spec.replicas
      and { { set = only, replicas = deployment.spec.replicas } } or {}
  elseif is_saturated(deployment, newest) then
    local changes = {}
    for _, set in ipairs(active) do
      changes[#changes + 1] = set ~= newest and { set = set, replicas = 0 } or nil
    end
    return changes
  elseif deployment.spec.strategy.type == "Recreate" then
    return {}
  end
  return shares(deployment, active)
end


return M
