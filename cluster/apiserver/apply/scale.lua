--- Owners of the number of replicas, when it is written through the scale subresource.
---
--- A Scale has its own paths and its own version. As upstream does, owners of the object are converted to owners of
--- its Scale, the write is tracked there, and the result is converted back.
--- Rules: apimachinery/pkg/util/managedfields/scalehandler.go.
local owners = require "cluster.apiserver.apply.owners"
local set = require "cluster.apiserver.apply.set"
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
