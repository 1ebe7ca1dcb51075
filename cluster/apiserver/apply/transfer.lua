--- The effect of a change on the owners of an object: which owner loses paths, and where that is a conflict.
--- Rules: structured-merge-diff merge/update.go, typed/reconcile_schema.go.
local owners = require "cluster.apiserver.apply.owners"
local set = require "cluster.apiserver.apply.set"

local M = {}

-- Kinds that are served in two versions by one set of objects, beside those of CRDs.
local SIBLINGS = {
  ["autoscaling/v1"] = "autoscaling/v2",
  ["autoscaling/v2"] = "autoscaling/v1",
  ["events.k8s.io/v1"] = "v1",
  v1 = "events.k8s.io/v1",
}


-- True if `version` is a version of `res`.
local function is_version(res, version)
  if version == res.api_version then
    return true
  elseif res.builtin then
    return SIBLINGS[res.api_version] == version
  end
  for _, known in ipairs(res.crd and res.crd.spec.versions or {}) do
    if res.group .. "/" .. known.name == version then
      return true
    end
  end
  return false
end


local function is_member_name(key)
  return key:sub(1, 2) == "f:"
end


-- The set `node` without what stands below a path that is one leaf of `kind` today.
local function reconcile(kind, node)
  local result = node
  for key, below in pairs(node) do
    local named = is_member_name(key)
    local side = kind and key ~= "." and (named and kind.map or not named and kind.list) or nil
    if side and side.atomic then
      return set.LEAF
    elseif side and not side.deduced then
      local changed = reconcile(named and side.fields[key:sub(3)] or side.element, below)
      if changed ~= below then
        result = result == node and set.copy(node) or result
        result[key] = changed
      end
    end
  end
  return result
end


--- Brings the sets of `owners_by_id` (changed in place) to what the schemas of `res` are today: owners in versions that
--- are no more go, paths below what is one leaf now become that leaf.
--- @param versions table of versions.lua
function M.reconcile(owners_by_id, res, versions)
  for id, owner in pairs(owners_by_id) do
    if not is_version(res, owner.version) then
      owners_by_id[id] = nil
    elseif not res.builtin then
      local paths = reconcile(versions:kind(owner.version), owner.set)
      if paths ~= owner.set then
        owners_by_id[id] = owners.with_set(owner, paths)
      end
    end
  end
end


--- The paths that others than the owner `self` have in what changed: identifier → set; nil for none.
function M.conflicts(owners_by_id, self, versions)
  local found
  for id, owner in pairs(owners_by_id) do
    if id ~= self then
      local shared = set.intersection(owner.set, (versions:changes(owner.version)))
      if next(shared) ~= nil then
        found = found or {}
        found[id] = shared
      end
    end
  end
  return found
end


--- Takes from all owners but `self` what has changed, and what is gone. Owners who have nothing left go.
function M.take(owners_by_id, self, versions)
  for id, owner in pairs(owners_by_id) do
    local paths = owner.set
    if id ~= self then
      local changed, removed = versions:changes(owner.version)
      paths = set.difference(set.difference(paths, set.intersection(paths, changed)), removed)
    end
    if next(paths) == nil then
      owners_by_id[id] = nil
    elseif paths ~= owner.set then
      owners_by_id[id] = owners.with_set(owner, paths)
    end
  end
end


return M
