--- Schemas as an API server publishes them: definitions that refer to each other by name, as host/kube/openapi.c copies
--- them out of its documents.
local names = require "moonloop.names"

local M = {}

-- The names of a set, in one string.
local function words(set)
  local list = {}
  for name in pairs(set) do
    list[#list + 1] = name
  end
  table.sort(list)
  return table.concat(list, " ")
end


-- Why a group has no such kind, in words; nil: it has, or the group is not known.
local function missing(groups, group, version, kind)
  local versions = groups[group]
  if not versions or versions[version] and versions[version][kind] then
    return nil
  elseif not versions[version] then
    return ("there is no version %s of %s; %s"):format(names.text(version),
      group == "" and "the core group" or group, names.hint(version, words(versions), "it has"))
  end
  local nearest = names.nearest(kind, words(versions[version]))
  return ("there is no kind %s in %s%s"):format(names.text(kind), group == "" and version or group .. "/" .. version,
    nearest and ("; did you mean '%s'?"):format(nearest) or "")
end


-- group → version → set of kinds
local function by_group(kinds)
  local groups = {}
  for _, kind in ipairs(kinds) do
    local versions = groups[kind.group] or {}
    groups[kind.group] = versions
    versions[kind.version] = versions[kind.version] or {}
    versions[kind.version][kind.kind] = true
  end
  return groups
end


-- All definitions, and the names of those of kinds: "apps/v1/Deployment" → name. Definitions of one name are the same:
-- they come from one server.
local function read(documents)
  local definitions, roots = {}, {}
  for kind, document in pairs(documents) do
    if type(document) == "table" and type(document.definitions) == "table" then
      roots[kind] = document.root
      for name, schema in pairs(document.definitions) do
        definitions[name] = definitions[name] or type(schema) == "table" and schema or nil
      end
    end
  end
  return definitions, roots
end


--- @param documents table "apps/v1/Deployment" → { root =, definitions = { name → schema } }
--- @param known table? list of { group =, version =, kind = }: of the groups in it, all kinds that there are
--- @return table kinds schema_of and missing, for the analysis
function M.source(documents, known)
  local definitions, roots = read(documents)
  local groups = by_group(known or {})
  return {
    schema_of = function(group, version, kind)
      local root = roots[(group == "" and "" or group .. "/") .. version .. "/" .. kind]
      if root then
        return definitions[root], definitions
      end
    end,
    missing = function(group, version, kind)
      return missing(groups, group, version, kind)
    end,
  }
end


return M
