--- Owners after a write that is not an apply: the writer becomes the owner of the fields that it changed.
--- Rules: apimachinery/pkg/util/managedfields/internal/{managedfieldsupdater,capmanagers,skipnonapplied}.go.
local owners = require "cluster.apiserver.apply.owners"
local reset_fields = require "cluster.apiserver.apply.reset_fields"
local set = require "cluster.apiserver.apply.set"
local transfer = require "cluster.apiserver.apply.transfer"

local M = {}

local MAX_UPDATERS = 10
local ANCIENT = "ancient-changes"


-- The owners that update, the oldest first: a list of identifiers.
local function updaters_of(owners_by_id)
  local ids = {}
  for id, owner in pairs(owners_by_id) do
    if owner.operation == "Update" then
      ids[#ids + 1] = id
    end
  end
  if #ids <= MAX_UPDATERS then
    return ids
  end
  table.sort(ids, function(a, b)
    local earlier, later = owners_by_id[a].time or "", owners_by_id[b].time or ""
    if earlier ~= later then
      return earlier < later
    end
    return a < b
  end)
  return ids
end


-- Puts the oldest updaters together, those of one version as one owner, until there are few enough.
local function cap(owners_by_id)
  local ids = updaters_of(owners_by_id)
  local count, first_of = #ids, {}
  for _, id in ipairs(ids) do
    if count <= MAX_UPDATERS then
      return
    end
    local owner = owners_by_id[id]
    local first = first_of[owner.version]
    if not first then
      first_of[owner.version] = id
    else
      local bucket = owners.identifier(ANCIENT, "Update", owner.version)
      local paths = (owners_by_id[bucket] or owners_by_id[first]).set
      if not owners_by_id[bucket] then
        owners_by_id[first] = nil
      end
      owners_by_id[id] = nil
      owners_by_id[bucket] = {
        manager = ANCIENT, operation = "Update", version = owner.version, time = owner.time,
        set = set.union(owner.set, paths),
      }
      count = count - 1
    end
  end
end


local function gain(owners_by_id, paths, res, options)
  local manager = options.manager ~= "" and options.manager or "unknown"
  local id = owners.identifier(manager, "Update", res.api_version, options.subresource)
  local before = owners_by_id[id]
  owners_by_id[id] = {
    manager = manager,
    operation = "Update",
    version = res.api_version,
    subresource = options.subresource,
    time = options.time,
    set = before and set.union(paths, before.set) or paths,
  }
end


--- Changes `owners_by_id` (owners by identifier) to what holds after a write.
--- @param versions table of versions.lua, between the objects before and after the write
--- @param options table { manager =, subresource =, time = }
function M.track(owners_by_id, versions, res, options)
  local changed, removed = versions:changes(res.api_version)
  if next(owners_by_id) ~= nil then
    transfer.reconcile(owners_by_id, res, versions)
    if next(changed) ~= nil or next(removed) ~= nil then
      transfer.take(owners_by_id, nil, versions)
    end
  end
  changed = set.difference(changed, reset_fields.STRIPPED)
  if next(changed) ~= nil then
    gain(owners_by_id, changed, res, options)
  end
  cap(owners_by_id)
end


return M
