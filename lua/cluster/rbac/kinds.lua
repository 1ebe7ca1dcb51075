--- From kinds to resources, without a cluster: the built-in kinds, and those of the given CustomResourceDefinitions.
local facts = require "cluster.apiserver.facts.resources"

local M = {}

local function key_of(group, version, kind)
  return ("%s/%s/%s"):format(group, version, kind)
end


local function has_status(entry)
  for _, part in ipairs(entry.parts or {}) do
    if part.name == "status" then
      return true
    end
  end
  return false
end


local function add_definition(known, crd)
  local names = crd.spec and crd.spec.names or {}
  for _, version in ipairs(names.kind and names.plural and crd.spec.group and crd.spec.versions or {}) do
    known[key_of(crd.spec.group, version.name, crd.spec.names.kind)] = {
      group = crd.spec.group,
      plural = crd.spec.names.plural,
      namespaced = crd.spec.scope == "Namespaced",
      has_status = type(version.subresources) == "table" and version.subresources.status ~= nil,
    }
  end
end


-- Also those in a List, as `kubectl get crd -o yaml` prints it.
local function add_manifest(known, manifest)
  if type(manifest) == "table" and manifest.kind == "CustomResourceDefinition" then
    add_definition(known, manifest)
  elseif type(manifest) == "table" and type(manifest.items) == "table" then
    for _, item in ipairs(manifest.items) do
      add_manifest(known, item)
    end
  end
end


--- @param manifests table of which the CustomResourceDefinitions count
--- @return function of group, version, kind: { group =, plural =, namespaced =, has_status = }, or nil
function M.reader(manifests)
  local known = {}
  for _, entry in ipairs(facts) do
    known[key_of(entry.group, entry.version, entry.kind)] = {
      group = entry.group, plural = entry.plural, namespaced = entry.namespaced, has_status = has_status(entry),
    }
  end
  for _, manifest in ipairs(manifests) do
    add_manifest(known, manifest)
  end
  return function(group, version, kind)
    return known[key_of(group, version, kind)]
  end
end


return M
