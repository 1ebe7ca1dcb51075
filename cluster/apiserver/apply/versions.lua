--- A write in the versions of those who own the object's fields: an owner's paths are those of the version in which it
--- wrote, and so are the changes that may take them.
---
--- A version of a CRD that is not served is taken for the version of the write. Rules: structured-merge-diff
--- merge/update.go (Converter), apimachinery/pkg/util/managedfields/internal/versionconverter.go.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local reset_fields = require "cluster.apiserver.apply.reset_fields"
local set = require "cluster.apiserver.apply.set"
local typed = require "cluster.apiserver.schema.typed"
local types = require "cluster.apiserver.apply.types"
local walk = require "cluster.apiserver.apply.walk"
local zero = require "cluster.apiserver.apply.zero"

local M = {}
M.__index = M


--- @param res table the resource, in the version of the write
--- @param options table { subresource =, versions = its descriptions, nil: the one; convert = function(object, from,
---   to) that returns the object of one description as another one has it; it may wait, and raise a status }
function M.new(res, options)
  local by_version = { [res.api_version] = res }
  local self = setmetatable({ res = res, options = options, by_version = by_version, compared = {} }, M)
  for _, other in ipairs(options.convert and options.versions or {}) do
    if other.api_version ~= res.api_version then
      by_version[other.api_version] = other
    end
  end
  return self
end


local function description(self, version)
  return self.by_version[version] or self.res
end


--- The type of the objects of a version, for field management.
function M:kind(version)
  return types.of(description(self, version).schema)
end


-- Decodes an object into the Go type of a built-in kind and encodes it again: fields that are always written are there
-- then. Changes the object.
local function as_typed(object, res)
  return res.builtin and typed.of(builtin.name_of(res.group, res.version, res.kind))(object) or object
end


--- An object of one version as another one has it; the same table where they are one.
function M:convert(object, from, to)
  from, to = description(self, from), description(self, to)
  if from == to then
    return object
  end
  local whole = as_typed(host.json.copy(object), from)
  return as_typed(self.options.convert(whole, from, to), to)
end


--- Sets the two objects to compare, of the version of the write. @param old table|nil nil: nothing was there
function M:between(old, new)
  self.old, self.new, self.compared = old, new, {}
end


-- The old and the new object in a version.
local function both(self, version)
  local own = self.res.api_version
  local old = self.old and self:convert(self.old, own, version) or zero.of(description(self, version))
  return old, self:convert(self.new, own, version)
end


--- The differences between the two objects in one version, except fields that a write of this sort does not own.
--- @return table changed paths that are new or have another value
--- @return table removed paths that are gone
function M:changes(version)
  local name = description(self, version).api_version
  local found = self.compared[name]
  if not found then
    local changed, removed = walk.compare(self:kind(name), both(self, name))
    local left_out = reset_fields.of(self.res, self.options.subresource)
    if next(left_out) ~= nil then
      changed, removed = set.without(changed, left_out), set.without(removed, left_out)
    end
    found = { changed, removed }
    self.compared[name] = found
  end
  return found[1], found[2]
end


return M
