--- Field management: which manager set which field of an object, and server-side apply, which uses it.
local owners = require "cluster.apiserver.apply.owners"
local scale = require "cluster.apiserver.apply.scale"
local update = require "cluster.apiserver.apply.update"

local M = {}


local function track(old, new, res, options)
  local meta = new.metadata
  local given, kept = meta.managedFields, owners.are_kept(old, new, options.subresource)
  -- The list itself is nobody's: the same table in both is not walked into.
  meta.managedFields = old and old.metadata.managedFields
  local changed, removed = update.changes(old, new, res, options)
  if kept and old and res.builtin and next(changed) == nil and next(removed) == nil then
    return old.metadata.managedFields
  end
  local known = owners.of_write(old, given, kept)
  if old and next(known) == nil then
    return nil
  end
  update.track(known, changed, removed, res, options)
  return owners.write(known)
end


--- Notes in new.metadata.managedFields who owns what after `old` (nil: nothing was there) became `new`. Changes nothing
--- else of `new`, and nothing of `old`. An object that has no owners gets none by an update; one whose lists do not
--- fit its schema loses its owners, as upstream has it.
---
--- @param res table resource description
--- @param options table { manager =, subresource = string|nil, time = "2026-07-03T10:00:00Z" }
function M.update_managers(old, new, res, options)
  if options.subresource == "scale" then
    return scale.update_managers(old, new, res, options)
  end
  local ok, result = pcall(track, old, new, res, options)
  if not ok and not tostring(result):find("^associative list") then
    error(result, 0)
  end
  new.metadata.managedFields = ok and result or nil
end


--- Server-side apply; see apply.lua.
M.apply = require "cluster.apiserver.apply.apply"


return M
