--- Aggregated discovery: all groups in one document.
---
--- Rules: apiserver/pkg/endpoints/discovery/aggregated. Only its second version exists, as in the real server.
local host = require "cluster.host"
local subresources = require "cluster.apiserver.discovery.subresources"

local M = {}

--- The media type of the document.
M.MEDIA = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


-- Built-in kinds are told of without group and version, as the real server does it.
local function response_kind(res, part)
  local group, version = "", ""
  if not res.builtin then
    group, version = res.group, res.version
  end
  return { group = part.group or group, version = part.version or version, kind = part.kind }
end


local function discovered(res)
  local parts = host.json.array {}
  for i, part in ipairs(subresources.of(res)) do
    parts[i] = { subresource = part.name, responseKind = response_kind(res, part), verbs = part.verbs }
  end
  return {
    resource = res.plural, responseKind = response_kind(res, { kind = res.kind }),
    scope = res.namespaced and "Namespaced" or "Cluster", singularResource = res.singular,
    verbs = subresources.list_or_nil(res.verbs), shortNames = subresources.list_or_nil(res.short),
    categories = subresources.list_or_nil(res.categories), subresources = parts[1] and parts or nil,
  }
end


local function discovered_group(group)
  local versions = host.json.array {}
  for i, known in ipairs(group.versions) do
    local resources = host.json.array {}
    for j, res in ipairs(known.resources) do
      resources[j] = discovered(res)
    end
    versions[i] = { version = known.version, resources = resources, freshness = "Current" }
  end
  return { metadata = { name = group.name ~= "" and group.name or nil }, versions = versions }
end


--- The document at "/api" (the core group) or "/apis" (all others).
--- @param layout table groups = list of groups in order, by_name = name → group; a group is { name =, versions = list
---   of { version =, resources = list of resource descriptions } }
function M.document(layout, path)
  local items = host.json.array {}
  for i, group in ipairs(path == "/api" and { layout.by_name[""] } or layout.groups) do
    items[i] = discovered_group(group)
  end
  return { kind = "APIGroupDiscoveryList", apiVersion = "apidiscovery.k8s.io/v2", metadata = {}, items = items }
end


--- Returns true if the aggregated form comes first among the forms in an Accept header that the server can send.
function M.is_preferred(header)
  for clause in (header or ""):gmatch("[^,]+") do
    local media, rest = clause:lower():match("^%s*([^;%s]*)(.*)$")
    local here = media == "application/json" and rest:find(";%s*as=apigroupdiscoverylist")
      and rest:find(";%s*g=apidiscovery.k8s.io") and rest:find(";%s*v=v2%f[;%s\0]")
    if here then
      return true
    elseif not rest:find(";%s*as=") then
      return false
    end
  end
  return false
end


return M
