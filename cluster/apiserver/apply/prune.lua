--- Removes fields of a merged object that its applier applied before but not now, and that no other manager owns. Each
--- owner's fields are those of its version.
--- Rules: structured-merge-diff merge/update.go, prune and what it calls.
local merge = require "cluster.apiserver.apply.merge"
local set = require "cluster.apiserver.apply.set"
local walk = require "cluster.apiserver.apply.walk"


-- The owned fields by version; and the list of these versions, with `first` in front.
local function owned_by_version(owners_by_id, first)
  local owned, order = {}, {}
  for _, owner in pairs(owners_by_id) do
    if not owned[owner.version] then
      owned[owner.version] = {}
      order[#order + 1] = owner.version
    end
    owned[owner.version] = set.union(owned[owner.version], owner.set)
  end
  table.sort(order, function(a, b)
    if (a == first) ~= (b == first) then
      return a == first
    end
    return a < b
  end)
  return owned, order
end


local function paths_of(kind, object)
  return set.with_fields(walk.paths(kind, object), kind)
end


-- Puts back of `merged` what is owned. @return table pruned, of the version `at` like both
local function add_owned(versions, at, merged, pruned, owners_by_id)
  local owned, order = owned_by_version(owners_by_id, at)
  for _, version in ipairs(order) do
    local kind = versions:kind(version)
    local whole, remaining = versions:convert(merged, at, version), versions:convert(pruned, at, version)
    local retained_paths = set.union(paths_of(kind, remaining), set.with_fields(owned[version], kind))
    remaining = merge.remove(kind, whole, set.difference(paths_of(kind, whole), retained_paths)) or {}
    pruned = versions:convert(remaining, version, at)
  end
  return pruned
end


--- @param versions table of versions.lua  @param own string the version of the object
--- @param merged table the object, which is not changed
--- @param owners_by_id table owners by identifier, the applier with its new set
--- @param last table|nil the owner that the applier was before
--- @return table the object, which shares parts with `merged`
return function(versions, own, merged, owners_by_id, last)
  if not last or next(last.set) == nil then
    return merged
  end
  local at, kind = last.version, versions:kind(last.version)
  local whole, before = versions:convert(merged, own, at), set.with_fields(last.set, kind)
  local pruned = add_owned(versions, at, whole, merge.remove(kind, whole, before) or {}, owners_by_id)
  local gone = set.difference(paths_of(kind, whole), paths_of(kind, pruned))
  return versions:convert(merge.remove(kind, whole, set.intersection(gone, before)) or {}, at, own)
end
