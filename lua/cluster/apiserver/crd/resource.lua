--- Resource descriptions of a CRD's kind: one for each served version.
---
--- Rules: apiextensions-apiserver/pkg/apiserver/customresource_{handler,discovery_controller}.go.
local builtin = require "cluster.apiserver.schema.builtin"
local columns = require "cluster.apiserver.crd.columns"
local default = require "cluster.apiserver.schema.default"
local deprecation = require "cluster.apiserver.crd.deprecation"
local host = require "cluster.host"
local prune = require "cluster.apiserver.schema.prune"
local strategy = require "cluster.apiserver.crd.strategy"

local M = {}

local VERBS = { "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch" }
local TEXT = { type = "string" }


-- ".spec.replicas" as descriptions have it.
local function bare(path)
  return path and path:gsub("^%.", "") or nil
end


local function subresources_of(version)
  local given = version.subresources or {}
  local scale = given.scale
  return {
    status = given.status and true or nil,
    scale = scale and {
      spec = bare(scale.specReplicasPath), status = bare(scale.statusReplicasPath),
      selector = bare(scale.labelSelectorPath),
    },
  }
end


--- The schema of whole objects: what the CRD says of them, and what every object has.
local function whole_schema(schema, gvk)
  local whole, properties = {}, {}
  for key, value in pairs(schema) do
    whole[key] = value
  end
  for name, property in pairs(schema.properties or {}) do
    properties[name] = property
  end
  properties.apiVersion, properties.kind = TEXT, TEXT
  properties.metadata = builtin.of("", "v1", "ObjectMeta")
  whole.properties = properties
  whole["x-kubernetes-group-version-kind"] = { gvk }
  return whole
end


local function describe(crd, version, storage_version)
  local spec, names = crd.spec, crd.status.acceptedNames
  local gvk = { group = spec.group, version = version.name, kind = names.kind }
  return {
    id = names.plural .. "." .. spec.group,
    group = spec.group, version = version.name, api_version = spec.group .. "/" .. version.name,
    plural = names.plural, singular = names.singular, kind = names.kind, list_kind = names.listKind,
    short = names.shortNames or {}, categories = names.categories or {},
    namespaced = spec.scope == "Namespaced", verbs = VERBS, builtin = false, storage_version = storage_version,
    subresources = subresources_of(version),
    schema = whole_schema(version.schema.openAPIV3Schema, gvk),
    columns = columns.of(version), strategy = strategy.of(version, crd),
    deprecated = deprecation.warning(crd, version),
    crd = crd,
  }
end


-- Between versions only apiVersion is converted, and each keeps to its schema: what one does not know it does not show,
-- and what the stored one does not know is not stored. Defaults are those of the version that was sent, and then those
-- of the stored one.
local function conversion(res, stored, version, storage)
  if host.json.equal(version.schema, storage.schema) then
    return nil
  end
  return {
    load = function(object)
      prune(res.schema, object)
    end,
    save = function(object)
      prune(stored.schema, object)
      default(stored.schema, object)
    end,
  }
end


local function storage_of(crd)
  for _, version in ipairs(crd.spec.versions) do
    if version.storage then
      return version
    end
  end
end


--- The description of the version of a CRD that is stored, whether it is served or not.
function M.stored(crd)
  local storage = storage_of(crd)
  return describe(crd, storage, storage.name)
end


--- The descriptions of all served versions of a CRD whose names are accepted. Beside what every description has:
---   crd         the CRD, of which nothing may be changed
function M.of(crd)
  local list, storage, stored = {}, storage_of(crd), M.stored(crd)
  for _, version in ipairs(crd.spec.versions) do
    if version.served then
      local res = version == storage and stored or describe(crd, version, storage.name)
      res.convert = res ~= stored and conversion(res, stored, version, storage) or nil
      list[#list + 1] = res
    end
  end
  return list
end


return M
