--- Server-side apply: merges a manager's configuration into an object, and decides which manager owns which field.
--- Rules: structured-merge-diff merge/update.go, apimachinery/pkg/util/managedfields/internal.
local conflict = require "cluster.apiserver.apply.conflict"
local host = require "cluster.host"
local last_applied = require "cluster.apiserver.apply.last_applied"
local merge = require "cluster.apiserver.apply.merge"
local owners = require "cluster.apiserver.apply.owners"
local prune = require "cluster.apiserver.apply.prune"
local reset_fields = require "cluster.apiserver.apply.reset_fields"
local set = require "cluster.apiserver.apply.set"
local status = require "cluster.apiserver.status"
local transfer = require "cluster.apiserver.apply.transfer"
local types = require "cluster.apiserver.apply.types"
local update = require "cluster.apiserver.apply.update"
local validate = require "cluster.apiserver.apply.validate"
local versions = require "cluster.apiserver.apply.versions"
local walk = require "cluster.apiserver.apply.walk"

local json = host.json

-- The owner of the fields that were there before the first apply.
local BEFORE_FIRST_APPLY = "before-first-apply"


local function text_or_empty(value)
  return type(value) == "string" and value or ""
end


-- "apps/v1, Kind=Deployment", as upstream prints what an object says it is.
local function show_kind(object)
  local version = text_or_empty(object.apiVersion)
  local group, name = version:match("^(.*)/(.*)$")
  return ("%s/%s, Kind=%s"):format(group or "", name or version, text_or_empty(object.kind))
end


-- "(NAMESPACE/NAME; GROUP/VERSION, Kind=KIND)": an object in messages, in the version `res`.
local function show_object(object, shown_kind)
  local meta = type(object.metadata) == "table" and object.metadata or {}
  return ("(%s/%s; %s)"):format(text_or_empty(meta.namespace), text_or_empty(meta.name), shown_kind)
end


-- Why what is stored, as it is shown in the version of `res`, cannot be merged into: a Status, or nil.
local function check_live(live, res, kind)
  local problem = not res.builtin and not validate.fits(kind, live) and validate.problem(kind, live)
  if not problem then
    return nil
  end
  local object_text = show_object(live, show_kind { apiVersion = res.api_version, kind = res.kind })
  if live.metadata.managedFields then
    return status.unknown(("failed to create typed live object %s: %s"):format(object_text, problem))
  end
  return status.unknown("failed to create manager for existing fields: "
    .. ("failed to convert new object %s to smd typed: %s"):format(object_text, problem))
end


-- Checks a configuration before it is merged: a Status, or nil if it is right.
local function check(applied, res, kind)
  if applied.apiVersion ~= res.api_version or applied.kind ~= res.kind then
    return status.bad_request("invalid object type: " .. show_kind(applied))
  end
  local meta = type(applied.metadata) == "table" and applied.metadata or {}
  if type(meta.managedFields) == "table" then
    return status.bad_request("metadata.managedFields must be nil")
  end
  local problem = validate.problem(kind, applied)
  if problem then
    return status.unknown(("failed to create typed patch object %s: %s"):format(
      show_object(applied, show_kind(applied)), problem))
  end
end


-- The object without metadata.managedFields; shares the rest.
local function without_owners(object)
  local result, meta = {}, {}
  for key, value in pairs(object) do
    result[key] = value
  end
  for key, value in pairs(object.metadata or {}) do
    meta[key] = value
  end
  meta.managedFields = nil
  result.metadata = meta
  return result
end


-- The owners of `live`, an object without managedFields; what nobody owns is given to one who stands for the past.
local function owners_of(live, bare, res, options)
  local owners_by_id = owners.read(live.metadata.managedFields, true)
  if not owners_by_id then
    return nil, status.unknown("failed to decode managed fields")
  end
  if next(owners_by_id) == nil then
    local past = { manager = BEFORE_FIRST_APPLY, subresource = options.subresource, time = options.time }
    local compared = versions.new(res, past)
    compared:between(nil, bare)
    update.track(owners_by_id, compared, res, past)
  end
  return owners_by_id
end


-- The conflicts that are left when those are allowed that come of client-side apply.
local function left_conflicts(conflicts, live, res, options)
  local allowed = options.manager == last_applied.MANAGER and last_applied.paths(live, res)
  if not allowed then
    return conflicts
  end
  local remaining = {}
  for id, paths in pairs(conflicts) do
    paths = set.difference(paths, allowed)
    remaining[id] = next(paths) ~= nil and paths or nil
  end
  return next(remaining) ~= nil and remaining or nil
end


-- Settles owners and conflicts between `live` and `object`, the merged and pruned one.
local function settle(owners_by_id, self, live, object, compared, res, options)
  compared:between(live, object)
  local conflicts = not options.force and transfer.conflicts(owners_by_id, self, compared)
  conflicts = conflicts and left_conflicts(conflicts, live, res, options)
  if conflicts then
    return conflict.status(owners_by_id, conflicts)
  end
  transfer.take(owners_by_id, self, compared)
end


-- Gives `self` its new set. @return table|nil the owner that it was before
local function claim(owners_by_id, self, applied, res, options)
  local before = owners_by_id[self]
  local paths = set.without(walk.paths(types.of(res.schema), applied), reset_fields.of(res, options.subresource))
  owners_by_id[self] = {
    manager = options.manager,
    operation = "Apply",
    version = res.api_version,
    subresource = options.subresource,
    time = before and before.time,
    set = paths,
  }
  return before
end


local function strip(owners_by_id, self)
  local owner = owners_by_id[self]
  local paths = owner and set.difference(owner.set, reset_fields.STRIPPED)
  if paths and next(paths) == nil then
    owners_by_id[self] = nil
  elseif paths then
    owner.set = paths
  end
end


local function run(live, applied, res, options)
  local kind = types.of(res.schema)
  local bare = without_owners(live)
  local owners_by_id, failure = owners_of(live, bare, res, options)
  failure = failure or check(applied, res, kind) or check_live(live, res, kind)
  if failure then
    return nil, failure
  end
  local compared = versions.new(res, options)
  transfer.reconcile(owners_by_id, res, compared)
  local self = owners.identifier(options.manager, "Apply", res.api_version, options.subresource)
  local last = claim(owners_by_id, self, applied, res, options)
  local object = prune(compared, res.api_version, merge.merge(kind, bare, applied), owners_by_id, last)
  failure = settle(owners_by_id, self, bare, object, compared, res, options)
  if failure then
    return nil, failure
  end
  if json.equal(bare, object) then
    object = bare
  elseif owners_by_id[self] then
    owners_by_id[self].time = options.time
  end
  strip(owners_by_id, self)
  if options.manager == last_applied.MANAGER then
    last_applied.refresh(object, applied)
  end
  object = json.copy(object)
  object.metadata = object.metadata or {}
  object.metadata.managedFields = owners.write(owners_by_id)
  return object
end


--- Puts `applied`, what options.manager wants, into `live` (nil: there is no object yet).
---
--- @param res table resource description
--- @param options table { manager =, force = bool, subresource = string|nil, time = "2026-07-03T10:00:00Z", versions =,
---   convert =: see versions.lua }
--- @return table|nil object the merged one, which shares nothing with the inputs; nil and a status: 409 with a cause
---   for each field of another manager, 400 and 500 for what cannot be applied
return function(live, applied, res, options)
  local ok, object, failure = pcall(run, live or { metadata = {} }, applied, res, options)
  if ok then
    return object, failure
  elseif type(object) == "string" and object:find("^associative list") then
    return nil, status.unknown("failed to merge config: " .. object)
  end
  error(object, 0)
end
