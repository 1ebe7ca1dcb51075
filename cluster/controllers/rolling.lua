--- How many replicas each ReplicaSet of a rolling update should have next. Only arithmetic, nothing is written.
---
--- Rules: kubernetes/pkg/controller/deployment/rolling.go and util/deployment_util.go (NewRSNewReplicas,
--- ResolveFenceposts).
local M = {}


-- A count, or a percentage of `total`.
local function resolve(value, total, round)
  local percent = type(value) == "string" and value:match "^(%d+)%%$"
  if percent then
    return round(tonumber(percent) * total / 100)
  end
  return math.tointeger(value) or 0
end


--- Returns how many replicas the update may add, and how many may be unavailable.
--- @return table { surge =, unavailable = }
function M.limits(deployment)
  local strategy, total = deployment.spec.strategy or {}, deployment.spec.replicas
  local rules = strategy.rollingUpdate
  if strategy.type == "Recreate" or not rules then
    return { surge = 0, unavailable = 0 }
  end
  local surge = resolve(rules.maxSurge, total, function(x) return math.ceil(x) end)
  local unavailable = resolve(rules.maxUnavailable, total, function(x) return math.floor(x) end)
  if surge == 0 and unavailable == 0 then
    unavailable = 1 -- or nothing would ever move
  end
  return { surge = surge, unavailable = math.min(unavailable, total) }
end


local function sum(sets, count)
  local total = 0
  for _, set in ipairs(sets) do
    total = total + count(set)
  end
  return total
end


local function wanted_of(set)
  return set.spec.replicas
end


local function available_of(set)
  return set.status.availableReplicas or 0
end


--- The replicas of the newest set.
function M.newest_replicas(deployment, newest, old)
  local wanted, present = deployment.spec.replicas, newest.spec.replicas
  if present >= wanted then
    return wanted
  end
  local room = wanted + M.limits(deployment).surge - present - sum(old, wanted_of)
  return room <= 0 and present or present + math.min(room, wanted - present)
end


-- Takes `count` replicas at most, as many of each set as `spare` says, the oldest first.
local function take(old, targets, count, spare)
  for _, set in ipairs(old) do
    local less = math.max(0, math.min(count, spare(set)))
    targets[set] = targets[set] - less
    count = count - less
  end
end


--- Returns the old sets to scale down: first by replicas that are not available, then as far as maxUnavailable allows.
--- @return table list of { set =, replicas = }, those that change
function M.old_replicas(deployment, newest, old)
  local total_old = sum(old, wanted_of)
  if total_old == 0 then
    return {}
  end
  local minimum = deployment.spec.replicas - M.limits(deployment).unavailable
  local unavailable_new = newest.spec.replicas - available_of(newest)
  local spare_total = total_old + newest.spec.replicas - minimum - unavailable_new
  if spare_total <= 0 then
    return {} -- the last change is not done yet; the counts in status are older than it
  end
  local targets = {}
  for _, set in ipairs(old) do
    if available_of(set) > set.spec.replicas then
      return {} -- the same: the set has just been scaled down
    end
    targets[set] = set.spec.replicas
  end
  take(old, targets, spare_total, function(set)
    return set.spec.replicas - available_of(set)
  end)
  take(old, targets, sum(old, available_of) + available_of(newest) - minimum, function(set)
    return math.min(targets[set], available_of(set))
  end)
  local changes = {}
  for _, set in ipairs(old) do
    if targets[set] ~= set.spec.replicas then
      changes[#changes + 1] = { set = set, replicas = targets[set] }
    end
  end
  return changes
end


return M
