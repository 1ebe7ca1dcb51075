--- Removes fields of a merged object that its applier applied before but not now, and that no other manager owns.
--- Rules: structured-merge-diff merge/update.go, prune and what it calls.
local merge = require "cluster.apiserver.apply.merge"
local set = require "cluster.apiserver.apply.set"
local walk = require "cluster.apiserver.apply.walk"


local function all_owned(known)
  local owned = {}
  for _, owner in pairs(known) do
    owned = set.union(owned, owner.set)
  end
  return owned
end


--- @param kind table type of the object
--- @param merged table the object, which is not changed
--- @param known table owners by identifier, the applier with its new set
--- @param last table|nil the set the applier had before
--- @return table the object, which shares parts with `merged`
return function(kind, merged, known, last)
  if not last or next(last) == nil then
    return merged
  end
  local paths = set.with_fields(walk.paths(kind, merged), kind)
  last = set.with_fields(last, kind)
  local pruned = merge.remove(kind, merged, last) or {}

  local kept = set.union(set.with_fields(walk.paths(kind, pruned), kind), set.with_fields(all_owned(known), kind))
  pruned = merge.remove(kind, merged, set.difference(paths, kept)) or {}

  kept = set.with_fields(walk.paths(kind, pruned), kind)
  return merge.remove(kind, merged, set.intersection(set.difference(paths, kept), last)) or {}
end
