--- Owners of the number of replicas, when it is written through the scale subresource.
---
--- A Scale has its own paths and its own version. As upstream does, owners of the object are converted to owners of
--- its Scale, the write is tracked or applied there, and the result is converted back.
--- Rules: apimachinery/pkg/util/managedfields/scalehandler.go.
local apply = require "cluster.apiserver.apply.apply"
local host = require "cluster.host"
local owners = require "cluster.apiserver.apply.owners"
local set = require "cluster.apiserver.apply.set"
local status = require "cluster.apiserver.status"
local update = require "cluster.apiserver.apply.update"
local versions = require "cluster.apiserver.apply.versions"

local M = {}

local SCALE = { id = "scales", api_version = "autoscaling/v1", builtin = true, schema = {
  type = "object",
  properties = { spec = { type = "object", properties = { replicas = { type = "integer" } } } },
} }
local REPLICAS = { "f:spec", "f:replicas" }


local function path_of(res)
  local path = {}
  for name in res.subresources.scale.spec:gmatch("[^.]+") do
    path[#path + 1] = "f:" .. name
  end
  return path
end


local function replicas_at(object, path)
  for _, key in ipairs(path) do
    object = type(object) == "table" and object[key:sub(3)] or nil
  end
  return object
end


local function scale_of(object, path)
  local replicas = replicas_at(object, path)
  return { metadata = {}, spec = { replicas = replicas ~= 0 and replicas or nil } }
end


-- The owners of a Scale, out of those of the object that have its replicas.
local function to_scale(owners_by_id, path)
  local result = {}
  for _, owner in pairs(owners_by_id) do
    if set.has(owner.set, path) then
      local id = owners.identifier(owner.manager, owner.operation, SCALE.api_version, owner.subresource)
      local same = owners.with_set(owner, set.of(REPLICAS))
      same.version = SCALE.api_version
      result[id] = same
    end
  end
  return result
end


-- The owners of the object, out of what they were and of those of its Scale now.
local function to_object(owners_by_id, scaled, path, res)
  local result = {}
  for id, owner in pairs(owners_by_id) do
    local remaining_owner = owner
    if set.has(owner.set, path) and scaled[id] then
      scaled[id] = nil
    elseif set.has(owner.set, path) then
      local rest = set.difference(owner.set, set.of(path))
      remaining_owner = next(rest) ~= nil and owners.with_set(owner, rest) or nil
    end
    result[id] = remaining_owner
  end
  for id, owner in pairs(scaled) do
    if set.has(owner.set, REPLICAS) then
      local gained = owners.with_set(owner, set.of(path))
      gained.version, gained.time = res.api_version, owners_by_id[id] and owners_by_id[id].time
      result[id] = gained
    end
  end
  return result
end


-- Of a custom kind a real server cannot convert the Scale that an apply has made, so that only one that changes
-- nothing is applied there. Rules: apiextensions-apiserver/pkg/apiserver/conversion/converter.go, which converts for
-- the field manager of Scales as well.
local function unconvertible(what, kind, meta)
  local version = kind.api_version
  return status.unknown(("%s (%s/%s; %s, Kind=%s) to proper version: request to convert CR to an invalid "
    .. "group/version: %s"):format(what, meta.namespace or "", meta.name or "", version, kind.kind, version))
end


local function is_scale(object, kind)
  return object.apiVersion == kind.api_version and object.kind == kind.kind
end


local function apply_to_custom(live, applied, kind, options)
  if not live.metadata.managedFields and is_scale(applied, kind) then
    return nil, unconvertible("failed to create manager for existing fields: failed to convert live object", kind, {})
  end
  local scale, failure = apply(live, applied, kind, options)
  if not scale then
    return nil, failure
  end
  live.metadata.managedFields = scale.metadata.managedFields
  if not host.json.equal(live, scale) then
    return nil, unconvertible("failed to convert new object", kind, applied.metadata or {})
  end
  return scale
end


--- As apply.lua, for an apply to the Scale of an object.
--- @param object table the one scaled; stays as it is  @param live table its Scale now, which gets owners
--- @param kind table description of Scale  @param res table that of the object
--- @return table|nil scale with the owners that it has then, for keep; or nil and a status
function M.apply(object, live, applied, kind, res, options)
  local owners_by_id = owners.read(object.metadata.managedFields, true)
  if not owners_by_id then
    return nil, status.unknown("failed to decode managed fields")
  end
  live.metadata.managedFields = owners.write(to_scale(owners_by_id, path_of(res)))
  return (res.builtin and apply or apply_to_custom)(live, applied, kind, options)
end


--- Converts the owners of a Scale that `apply` has made to owners of the object scaled, whose owners are those before
--- the apply until then.
function M.keep(object, scale, res)
  local owners_by_id = owners.read(object.metadata.managedFields, true)
  local scaled = owners.read(scale.metadata.managedFields, true)
  object.metadata.managedFields = owners.write(to_object(owners_by_id, scaled, path_of(res), res))
end


--- As update_managers of init.lua, for a write through the scale subresource; `old` and `new` are the objects scaled.
function M.update_managers(old, new, res, options)
  local path = path_of(res)
  local owners_by_id = owners.read(old.metadata.managedFields, true)
  if not owners_by_id then
    return
  end
  local scaled = to_scale(owners_by_id, path)
  if next(scaled) ~= nil then
    local compared = versions.new(SCALE, { subresource = options.subresource })
    compared:between(scale_of(old, path), scale_of(new, path))
    update.track(scaled, compared, SCALE, options)
  end
  new.metadata.managedFields = owners.write(to_object(owners_by_id, scaled, path, res))
end


return M
