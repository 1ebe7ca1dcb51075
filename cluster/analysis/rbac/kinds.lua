--- From kinds to resources, without a cluster: the built-in kinds, and those of the given CustomResourceDefinitions.
local facts = require "cluster.kinds.resources"
local names = require "cluster.names"

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


local function table_or_empty(value)
  return type(value) == "table" and value or {}
end


-- Why no server has such a CRD, or nil. A role is made of its names: "*" as a plural would be everything.
local function problem_of(crd)
  local spec, name = table_or_empty(crd.spec), table_or_empty(crd.metadata).name
  local wanted = table_or_empty(spec.names)
  local function wrong(field, value, check)
    if type(value) ~= "string" then
      return ("%s: a text is needed"):format(field)
    end
    local messages = check(value)
    return messages and ("%s: %q: %s"):format(field, value, messages[1])
  end
  local function lower(text)
    return names.label_1035(text:lower())
  end
  local problem = wrong("metadata.name", name, names.subdomain) or wrong("spec.group", spec.group, names.subdomain)
    or wrong("spec.names.plural", wanted.plural, names.label_1035) or wrong("spec.names.kind", wanted.kind, lower)
  if not problem and name ~= wanted.plural .. "." .. spec.group then
    problem = ("metadata.name: %q: must be spec.names.plural+\".\"+spec.group"):format(name)
  end
  for i, version in ipairs(table_or_empty(spec.versions)) do
    problem = problem or wrong(("spec.versions[%d].name"):format(i - 1), table_or_empty(version).name, names.label_1035)
  end
  return problem
end


local function add_definition(known, crd, problems)
  local problem = problem_of(crd)
  if problem then
    local name = table_or_empty(crd.metadata).name
    problems[#problems + 1] = ("CustomResourceDefinition %s: %s"):format(type(name) == "string" and name or "", problem)
    return
  end
  for _, version in ipairs(table_or_empty(crd.spec.versions)) do
    local key = key_of(crd.spec.group, version.name, crd.spec.names.kind)
    if known[key] and known[key].is_builtin then
      problems[#problems + 1] = ("CustomResourceDefinition %s: %s is a built-in kind"):format(crd.metadata.name, key)
      return
    end
    known[key] = {
      group = crd.spec.group,
      plural = crd.spec.names.plural,
      namespaced = crd.spec.scope == "Namespaced",
      has_status = type(version.subresources) == "table" and version.subresources.status ~= nil,
    }
  end
end


-- Also those in a List, as `kubectl get crd -o yaml` prints it.
local function add_manifest(known, manifest, problems)
  if type(manifest) == "table" and manifest.kind == "CustomResourceDefinition" then
    add_definition(known, manifest, problems)
  elseif type(manifest) == "table" and type(manifest.items) == "table" then
    for _, item in ipairs(manifest.items) do
      add_manifest(known, item, problems)
    end
  end
end


--- @param manifests table only its CustomResourceDefinitions count
--- @return function of group, version, kind: { group =, plural =, namespaced =, has_status = }, or nil
--- @return table problems lines about definitions that no server would take; they do not count
function M.reader(manifests)
  local known, problems = {}, {}
  for _, entry in ipairs(facts) do
    known[key_of(entry.group, entry.version, entry.kind)] = {
      group = entry.group, plural = entry.plural, namespaced = entry.namespaced, has_status = has_status(entry),
      is_builtin = true,
    }
  end
  for _, manifest in ipairs(manifests) do
    add_manifest(known, manifest, problems)
  end
  return function(group, version, kind)
    return known[key_of(group, version, kind)]
  end, problems
end


return M
