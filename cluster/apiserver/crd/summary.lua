--- Makes the part of a CRD that is kept in memory: all of its spec and status but the schemas (source.lua), and the
--- metadata that decides what is served.
local host = require "cluster.host"

local M = {}


local function without_schema(version)
  local summary = {}
  for key, value in pairs(version) do
    if key ~= "schema" then
      summary[key] = value
    end
  end
  return host.json.copy(summary)
end


--- @param crd table as it is stored
--- @return table a CRD of its own, whose versions have no `schema`
function M.of(crd)
  local meta, spec = crd.metadata, crd.spec
  local versions = host.json.array {}
  for i, version in ipairs(spec.versions) do
    versions[i] = without_schema(version)
  end
  return {
    metadata = {
      name = meta.name, uid = meta.uid, generation = meta.generation, deletionTimestamp = meta.deletionTimestamp,
    },
    spec = {
      group = spec.group, scope = spec.scope, names = host.json.copy(spec.names), versions = versions,
      conversion = host.json.copy(spec.conversion),
    },
    status = host.json.copy(crd.status),
  }
end


return M
