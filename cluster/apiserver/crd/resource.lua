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
  local subresources = version.subresources or {}
  local scale = subresources.scale
  return {
    status = subresources.status and true or nil,
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


-- Fields that take time or memory; each is made when it is first read.
local LATER = {
  -- what the CRD itself says
  own_schema = function(res)
    return res.source:schema(res.version)
  end,
  schema = function(res)
    return whole_schema(res.own_schema, res.gvk)
  end,
  columns = function(res)
    return columns.of(res.definition)
  end,
  strategy = function(res)
    local definition = setmetatable({ schema = { openAPIV3Schema = res.own_schema } }, { __index = res.definition })
    return strategy.of(definition, res.crd)
  end,
}


local RESOURCE = {
  __index = function(res, key)
    local make = LATER[key]
    if make then
      local value = make(res)
      rawset(res, key, value)
      return value
    end
  end,
}


-- The schema for a caller who needs it only once: it is not kept.
local function read_schema(res)
  return rawget(res, "schema") or whole_schema(res.source:schema(res.version), res.gvk)
end


local function describe(crd, version, storage_version, source)
  local spec, names, meta = crd.spec, crd.status.acceptedNames, crd.metadata
  return setmetatable({
    id = names.plural .. "." .. spec.group,
    group = spec.group, version = version.name, api_version = spec.group .. "/" .. version.name,
    plural = names.plural, singular = names.singular, kind = names.kind, list_kind = names.listKind,
    short = names.shortNames or {}, categories = names.categories or {},
    namespaced = spec.scope == "Namespaced", verbs = VERBS, builtin = false, storage_version = storage_version,
    subresources = subresources_of(version), gvk = { group = spec.group, version = version.name, kind = names.kind },
    deprecated = deprecation.warning(crd, version) or false, convert = false, crd = crd, definition = version,
    source = source, read_schema = read_schema,
    fingerprint = host.json.encode { meta.name, version.name, meta.uid, meta.generation, names },
  }, RESOURCE)
end


-- Between versions only apiVersion is converted. Each version only shows fields of its own schema, and only fields of
-- the stored version's schema are stored. Defaults are those of the version that was sent, and then those of the
-- stored one.
local function conversion(res, stored)
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
  for i, version in ipairs(crd.spec.versions) do
    if version.storage then
      return version, i
    end
  end
end


--- The description of the version of a CRD that is stored, whether it is served or not.
--- @param crd table as summary.lua makes it  @param source table as source.lua makes it
function M.stored(crd, source)
  local storage = storage_of(crd)
  return describe(crd, storage, storage.name, source)
end


--- The description of a version of a CRD by its name, whether it is served or not; nil when it has no such version.
function M.version(crd, source, name)
  for _, version in ipairs(crd.spec.versions) do
    if version.name == name then
      return describe(crd, version, storage_of(crd).name, source)
    end
  end
end


--- The descriptions of all served versions of a CRD whose names are accepted. Schema, columns and strategy of each are
--- made when they are first read. Fields beside those of every description:
---   crd            the CRD without its schemas, not to be changed
---   definition     what it says of this version
---   read_schema    function(res) -> the schema, for a caller who needs it only once
---   fingerprint    a text that changes when something else is served
--- @param full table the CRD as it is stored  @param crd table the same without its schemas, as summary.lua makes it
--- @param source table of source.lua  @param webhook table|nil of conversion.lua, if one converts the objects
function M.of(full, crd, source, webhook)
  local list, stored = {}, M.stored(crd, source)
  local storage, at = storage_of(crd)
  local versions = full.spec.versions
  for i, version in ipairs(crd.spec.versions) do
    if version.served then
      local res = version == storage and stored or describe(crd, version, storage.name, source)
      if webhook then
        res.convert, res.stored = { webhook = webhook }, stored
      elseif res ~= stored and not host.json.equal(versions[i].schema, versions[at].schema) then
        res.convert = conversion(res, stored)
      end
      list[#list + 1] = res
    end
  end
  return list
end


return M
