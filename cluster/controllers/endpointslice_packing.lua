--- Spreads endpoints over the slices of a group, all of one address type with the same ports, with few writes.
---
--- Rules: k8s.io/endpointslice/reconciler.go (reconcileByPortMapping). Endpoints get their places in the order of the
--- list, where Kubernetes takes any.
local endpointslices = require "cluster.controllers.endpointslices"
local host = require "cluster.host"

local M = {}

local ENDPOINTS_MAX = 100 -- of a slice: --max-endpoints-per-slice of kube-controller-manager


-- Endpoints that still have no place: a list that can be taken from by id, and from its front.
local function new_set(list)
  local set = { list = list, first = 1, by_id = {}, count = 0 }
  for _, endpoint in ipairs(list) do
    local id = endpointslices.id_of(endpoint)
    set.count = set.count + (set.by_id[id] and 0 or 1)
    set.by_id[id] = endpoint
  end
  return set
end


local function take(set, id)
  local endpoint = set.by_id[id]
  if endpoint then
    set.by_id[id], set.count = nil, set.count - 1
  end
  return endpoint
end


local function take_next(set)
  local endpoint
  while not endpoint do
    endpoint = take(set, endpointslices.id_of(set.list[set.first]))
    set.first = set.first + 1
  end
  return endpoint
end


local function fill(slice, set)
  while set.count > 0 and #slice.endpoints < ENDPOINTS_MAX do
    table.insert(slice.endpoints, take_next(set))
  end
end


-- Keeps in a slice what is still wanted, as it is now. @return boolean whether that changes it
local function keep_wanted(slice, set)
  local kept, has_changed = host.json.array {}, false
  for _, endpoint in ipairs(slice.endpoints) do
    local wanted = take(set, endpointslices.id_of(endpoint))
    if wanted then
      kept[#kept + 1] = wanted
      has_changed = has_changed or not endpointslices.are_alike(wanted, endpoint)
    end
  end
  has_changed = has_changed or #kept ~= #slice.endpoints
  slice.endpoints = has_changed and kept or slice.endpoints
  return has_changed
end


local function fuller_first(a, b)
  if #a.endpoints ~= #b.endpoints then
    return #a.endpoints > #b.endpoints
  end
  return a.metadata.name < b.metadata.name
end


-- Takes from a list the slice that `count` more endpoints fill best, if there is one that they fit into.
local function take_best(slices, count)
  local best
  for i, slice in ipairs(slices) do
    local size = #slice.endpoints
    if size + count <= ENDPOINTS_MAX and (not best or size > #slices[best].endpoints) then
      best = i
    end
  end
  return best and table.remove(slices, best)
end


local function append(list, more)
  table.move(more, 1, #more, #list + 1, list)
end


--- Adds to `changes` what brings the slices of a group in line with what is wanted; see endpointslices.write.
--- @param slices table list of those there are; they are changed
--- @param endpoints table list
--- @param labels table of all slices
--- @param new fun(): table a slice without endpoints
function M.pack(changes, slices, endpoints, labels, new)
  local set, changed, unchanged = new_set(endpoints), {}, {}
  for _, slice in ipairs(slices) do
    local has_changed, list = keep_wanted(slice, set), changed
    if has_changed and #slice.endpoints == 0 then
      list = changes.delete
    elseif not has_changed and host.json.equal(slice.metadata.labels, labels) then
      list = unchanged
    end
    slice.metadata.labels = labels
    list[#list + 1] = slice
  end
  table.sort(changed, fuller_first)
  for _, slice in ipairs(changed) do
    fill(slice, set)
  end
  while set.count > 0 do
    local slice = set.count < ENDPOINTS_MAX and take_best(unchanged, set.count)
    append(slice and changed or changes.create, { slice or new() })
    fill(slice or changes.create[#changes.create], set)
  end
  append(changes.update, changed)
end


return M
