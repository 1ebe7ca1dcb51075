--- DaemonSets: one pod on each node that its pods fit.
---
--- Rules: kubernetes/pkg/controller/daemon/{daemon_controller,update}.go.
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"
local nodes_of = require "cluster.controllers.daemonset_nodes"
local pods = require "cluster.controllers.pods"
local revisions = require "cluster.controllers.statefulset_revisions"

local M = {}

local GENERATION = "deprecated.daemonset.template.generation"
local GENERATION_LABEL = "pod-template-generation"
-- A pod that failed is not replaced sooner than this.
local PAUSE = 1


local function hash_of(revision)
  return revision.metadata.labels[revisions.LABEL]
end


local function older_first(a, b)
  if a.metadata.creationTimestamp ~= b.metadata.creationTimestamp then
    return a.metadata.creationTimestamp < b.metadata.creationTimestamp
  end
  return a.metadata.name < b.metadata.name
end


local function create(api, set, node, hash)
  local generation = (set.metadata.annotations or {})[GENERATION]
  local pod = pods.from_template(set.spec.template, { [revisions.LABEL] = hash, [GENERATION_LABEL] = generation })
  pod.metadata.generateName = set.metadata.name .. "-"
  nodes_of.bind(pod.spec, node.metadata.name)
  return pods.create(api, pod, set)
end


local function delete(api, set, pod)
  if not pod.metadata.deletionTimestamp then
    api.delete(pod)
    api.event(set, "Normal", "SuccessfulDelete", "Deleted pod: " .. pod.metadata.name)
  end
end


-- How many nodes an update may leave without an available pod, or (surge) give a second one.
local function limits(set, desired)
  local strategy = set.spec.updateStrategy
  local rolling = strategy.type == "RollingUpdate" and strategy.rollingUpdate or {}
  local function count(value)
    local share = type(value) == "string" and value:match "^(%d+)%%$"
    return share and math.ceil(tonumber(share) * desired / 100) or math.tointeger(value) or 0
  end
  return count(rolling.maxUnavailable), count(rolling.maxSurge)
end


-- Sorts the pods of a node: { node, run, stay, old, new, ended (lists of pods), leaving (number of deleted pods) }.
local function pods_on_node(set, node, list, hash)
  local place = { node = node, old = {}, new = {}, leaving = 0, ended = {} }
  place.run, place.stay = nodes_of.fits(set.spec.template.spec, node)
  for _, pod in ipairs(list) do
    local phase = pod.status and pod.status.phase
    if pod.metadata.deletionTimestamp then
      place.leaving = place.leaving + 1
    elseif phase == "Failed" or phase == "Succeeded" then
      place.ended[#place.ended + 1] = pod
    else
      local group = revisions.of(pod) == hash and place.new or place.old
      group[#group + 1] = pod
    end
  end
  table.sort(place.old, older_first)
  table.sort(place.new, older_first)
  return place
end


local function places_of(api, set, list, hash)
  local by_node, places = {}, {}
  for _, pod in ipairs(list) do
    local name = nodes_of.of(pod) or ""
    by_node[name] = by_node[name] or {}
    table.insert(by_node[name], pod)
  end
  for _, node in ipairs(api.list("", "v1", "nodes")) do
    places[#places + 1] = pods_on_node(set, node, by_node[node.metadata.name] or {}, hash)
  end
  return places
end


-- Deletes pods that have ended, to be made anew. @return number|nil seconds until it is time to
local function clear_ended(api, set, place, now)
  local again
  for _, pod in ipairs(place.ended) do
    local failed = pod.status.phase == "Failed"
    local age = now - instant.read(pod.metadata.creationTimestamp)
    if age < PAUSE then
      again = PAUSE - age
    else
      api.event(set, failed and "Warning" or "Normal", failed and "FailedDaemonPod" or "SucceededDaemonPod",
        ("Found %s daemon pod %s/%s on node %s, will try to %s it"):format(failed and "failed" or "succeeded",
          pod.metadata.namespace, pod.metadata.name, place.node.metadata.name, failed and "kill" or "delete"))
      delete(api, set, pod)
    end
  end
  return again
end


-- Keeps one pod on a node where one belongs, else none; during a surge an old and a new one.
-- @param made integer pods that this look has made  @return integer the same, with those made here
local function manage(api, set, place, hash, made)
  if place.run and #place.old + #place.new == 0 and place.leaving == 0 and #place.ended == 0 then
    if made < pods.BURST_MAX then
      place.new[1] = create(api, set, place.node, hash)
      return made + 1
    end
  elseif not place.run and not place.stay then
    for _, group in ipairs { place.old, place.new, place.ended } do
      for _, pod in ipairs(group) do
        delete(api, set, pod)
      end
    end
    return made
  end
  for _, group in ipairs { place.old, place.new } do
    for i = 2, #group do
      delete(api, set, group[i])
    end
  end
  return made
end


local function is_available(pod, set)
  return pod ~= nil and pods.is_available(pod, set.spec.minReadySeconds)
end


-- Replaces old pods by new ones without a second pod on a node.
local function replace(api, set, places, unavailable)
  local missing, candidates = 0, {}
  for _, place in ipairs(places) do
    local old = place.run and place.old[1]
    if place.run and not is_available(place.new[1], set) and not is_available(place.old[1], set) then
      missing = missing + 1
      if old then
        delete(api, set, old)
      end
    elseif old then
      candidates[#candidates + 1] = old
    end
  end
  for i = 1, math.min(#candidates, unavailable - missing) do
    delete(api, set, candidates[i])
  end
end


-- Gives nodes with an old pod a new one first.
local function surge(api, set, places, hash, limit)
  local extra = 0
  for _, place in ipairs(places) do
    if place.run and place.old[1] and place.new[1] then
      if is_available(place.new[1], set) then
        delete(api, set, place.old[1])
      else
        extra = extra + 1
      end
    end
  end
  for _, place in ipairs(places) do
    if place.run and place.old[1] and not place.new[1] and place.leaving == 0 then
      if not is_available(place.old[1], set) or extra < limit then
        extra = extra + 1
        place.new[1] = create(api, set, place.node, hash)
      end
    end
  end
end


local function roll(api, set, places, hash)
  local desired = 0
  for _, place in ipairs(places) do
    desired = desired + (place.run and 1 or 0)
  end
  local unavailable, extra = limits(set, desired)
  if extra > 0 then
    surge(api, set, places, hash, extra)
  elseif unavailable > 0 then
    replace(api, set, places, unavailable)
  end
end


-- The status as the pods are; the second result says when to look again.
local function count(set, places)
  local status, again = {
    observedGeneration = set.metadata.generation, currentNumberScheduled = 0, numberMisscheduled = 0,
    desiredNumberScheduled = 0, numberReady = 0, updatedNumberScheduled = 0, numberAvailable = 0,
    numberUnavailable = 0, collisionCount = set.status and set.status.collisionCount,
    conditions = set.status and set.status.conditions,
  }, nil
  local function add(name)
    status[name] = status[name] + 1
  end
  for _, place in ipairs(places) do
    local pod = place.old[1] or place.new[1]
    if place.run then
      add "desiredNumberScheduled"
      local available, seconds_left = false, nil
      if pod then
        available, seconds_left = pods.is_available(pod, set.spec.minReadySeconds)
        add "currentNumberScheduled"
        status.numberReady = status.numberReady + (pods.is_ready(pod) and 1 or 0)
        status.updatedNumberScheduled = status.updatedNumberScheduled + (place.old[1] and 0 or 1)
      end
      again = seconds_left and seconds_left > 0 and math.min(seconds_left, again or seconds_left) or again
      add(available and "numberAvailable" or "numberUnavailable")
    elseif pod then
      add "numberMisscheduled"
    end
  end
  for _, name in ipairs { "updatedNumberScheduled", "numberAvailable", "numberUnavailable" } do
    status[name] = status[name] > 0 and status[name] or nil
  end
  return status, again
end


-- Deletes the oldest revisions that no pod has, as long as there are more than the limit.
local function trim(api, set, all, current, list)
  local live, old = { [hash_of(current)] = true }, {}
  for _, pod in ipairs(list) do
    live[revisions.of(pod) or ""] = true
  end
  for _, revision in ipairs(all) do
    old[#old + 1] = not live[hash_of(revision)] and revision or nil
  end
  for i = 1, #old - set.spec.revisionHistoryLimit do
    api.delete(old[i])
  end
end


-- Of revisions with the same template only the latest stays, and their pods become its own.
local function merge_revisions(api, current, others, list)
  for _, other in ipairs(others) do
    for i, pod in ipairs(list) do
      if revisions.of(pod) == hash_of(other) then
        list[i] = api.patch(pod, { metadata = { labels = { [revisions.LABEL] = hash_of(current) } } })
      end
    end
    api.delete(other)
  end
end


local function reconcile(api, set)
  local list = api.owned(set, "", "v1", "pods")
  if set.metadata.deletionTimestamp then
    return nil
  end
  local current, all, others = revisions.ensure(api, set)
  merge_revisions(api, current, others, list)
  local hash, soon, made = hash_of(current), nil, 0
  local places = places_of(api, set, list, hash)
  for _, place in ipairs(places) do
    soon = place.run and clear_ended(api, set, place, host.now()) or soon
    made = manage(api, set, place, hash, made)
  end
  roll(api, set, places, hash)
  trim(api, set, all, current, list)
  local status, again = count(set, places)
  api.write_status(set, status)
  return soon or again
end


--- Starts the controller.
function M.start(server)
  local function everyone()
    local keys = {}
    server.store:collection("daemonsets.apps"):each(nil, nil, function(entry)
      keys[#keys + 1] = entry.namespace .. "/" .. entry.name
    end)
    return keys
  end
  controller.start(server, {
    name = "daemonset-controller",
    kind = { "apps", "v1", "DaemonSet" },
    owns = { "pods" },
    maps = { nodes = everyone },
    reconcile = reconcile,
  })
end


return M
