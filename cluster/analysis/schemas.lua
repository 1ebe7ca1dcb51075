--- The kinds that the development binary knows without a server: the built-in ones, and those of CRDs. For the analysis
--- of scripts (lua/analysis), and for `moonloop types`.
local builtin = require "cluster.apiserver.schema.builtin"
local definitions = require "cluster.apiserver.openapi.definitions"
local facts = require "cluster.kinds.resources"
local openapi_versions = require "cluster.apiserver.openapi.openapi_versions"

local M = {}

-- The value below; nil where something on the way is no table.
local function below(value, ...)
  for _, key in ipairs { ... } do
    value = type(value) == "table" and value[key] or nil
  end
  return value
end


local function list_of(value)
  return ipairs(type(value) == "table" and value or {})
end


local function key_of(group, version, kind)
  return (group == "" and "" or group .. "/") .. version .. "/" .. kind
end


local function add_definitions(known, manifest)
  local spec = below(manifest, "kind") == "CustomResourceDefinition" and manifest.spec
  local group, kind = below(spec, "group"), below(spec, "names", "kind")
  for _, version in list_of(below(spec, "versions")) do
    local schema, name = below(version, "schema", "openAPIV3Schema"), below(version, "name")
    if type(group) == "string" and type(kind) == "string" and type(name) == "string" then
      known.schemas[key_of(group, name, kind)] = type(schema) == "table" and schema or nil
      known.kinds[#known.kinds + 1] = { group = group, version = name, kind = kind }
    end
  end
  for _, item in list_of(below(manifest, "items")) do
    add_definitions(known, item) -- a List, as `kubectl get crd -o yaml` prints it
  end
end


-- { schemas = "example.com/v1/Thing" → schema, kinds = list of { group =, version =, kind = } }, of the CRDs.
local function read(manifests)
  local known = { schemas = {}, kinds = {} }
  for _, manifest in ipairs(manifests or {}) do
    add_definitions(known, manifest)
  end
  return known
end


-- A built-in kind with all that it refers to, as host/kube/openapi.c copies it out of a server's document; or nil.
local function builtin_document(group, version, kind)
  local root, names = builtin.name_of(group, version, kind), {}
  if not root then
    return nil
  end
  definitions.collect(root, names)
  local document = { root = root, definitions = {} }
  for name in pairs(names) do
    document.definitions[name] = definitions.schema(name, openapi_versions.v3)
  end
  return document
end


--- The answer to the question of analysis.run.
--- @param options table { kinds = list of { group =, version =, kind = }, manifests = those with the CRDs, or nil }
--- @return table { documents =, known = }, as documents.source of lua/analysis takes them
function M.answer(options)
  local known, documents = read(options.manifests), {}
  for _, kind in ipairs(options.kinds) do
    local key = key_of(kind.group, kind.version, kind.kind)
    local schema = known.schemas[key]
    documents[key] = schema and { root = key, definitions = { [key] = schema } }
      or builtin_document(kind.group, kind.version, kind.kind)
  end
  for _, entry in ipairs(facts) do
    known.kinds[#known.kinds + 1] = { group = entry.group, version = entry.version, kind = entry.kind }
  end
  return { documents = documents, known = known.kinds }
end


--- @param manifests table those among which are the CRDs
--- @return function(group, version, kind) → schema, or nil
--- @return table set of the kinds of the CRDs, "example.com/v1/Thing"
function M.reader(manifests)
  local known, kinds = read(manifests), {}
  for key in pairs(known.schemas) do
    kinds[key] = true
  end
  return function(group, version, kind)
    return known.schemas[key_of(group, version, kind)] or builtin.of(group, version, kind)
  end, kinds
end


return M
