--- Field management: which manager set which field of an object, and server-side apply, which uses it.
local owners = require "cluster.apiserver.apply.owners"
local scale = require "cluster.apiserver.apply.scale"
local status = require "cluster.apiserver.status"
local types = require "cluster.apiserver.apply.types"
local update = require "cluster.apiserver.apply.update"
local validate = require "cluster.apiserver.apply.validate"
local versions = require "cluster.apiserver.apply.versions"

local M = {}


local function track(old, new, res, options)
  local meta = new.metadata
  local managed_fields, are_kept = meta.managedFields, owners.are_kept(old, new, options.subresource)
  -- The list itself is nobody's: the same table in both is not walked into.
  meta.managedFields = old and old.metadata.managedFields
  local compared = versions.new(res, options)
  compared:between(old, new)
  local changed, removed = compared:changes(res.api_version)
  if are_kept and old and res.builtin and next(changed) == nil and next(removed) == nil then
    return old.metadata.managedFields
  end
  local owners_by_id = owners.of_write(old, managed_fields, are_kept)
  if old and next(owners_by_id) == nil then
    return nil
  end
  update.track(owners_by_id, compared, res, options)
  return owners.write(owners_by_id)
end


-- True if a custom resource has a shape that field management can read. An object that was stored in another version,
-- or under another schema, may have a different one; so may a part that the write is about to lose, such as the spec
-- in a write of the status.
local function is_readable(object, res)
  return res.builtin or object == nil or validate.fits(types.of(res.schema), object)
end


--- Notes in new.metadata.managedFields who owns what after `old` (nil: nothing was there) became `new`. Changes nothing
--- else of `new`, and nothing of `old`. An object without owners stays so in an update. An object that does not fit its
--- schema loses its owners, as upstream, and so does one that cannot be converted to the version of an owner.
---
--- @param res table resource description
--- @param options table { manager =, subresource = string|nil, time = "2026-07-03T10:00:00Z", versions =, convert =:
---   see versions.lua; nil where there is but one version }
function M.update_managers(old, new, res, options)
  if options.subresource == "scale" then
    return scale.update_managers(old, new, res, options)
  end
  if not (is_readable(new, res) and is_readable(old, res)) then
    new.metadata.managedFields = nil
    return
  end
  local ok, result = pcall(track, old, new, res, options)
  if not ok and not status.is(result) and not tostring(result):find("^associative list") then
    error(result, 0)
  end
  new.metadata.managedFields = ok and result or nil
end


--- Server-side apply; see apply.lua.
M.apply = require "cluster.apiserver.apply.apply"

--- Server-side apply to the Scale of an object, and what its owners are for the object; see scale.lua.
M.apply_scale, M.keep_scale_owners = scale.apply, scale.keep


return M
