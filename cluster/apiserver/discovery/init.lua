--- Discovery: the served groups, versions and resources.
---
--- Rules: apiserver/pkg/endpoints/discovery (and its folder aggregated), kube-aggregator/pkg/apiserver/handler_apis.go.
local aggregated = require "cluster.apiserver.discovery.aggregated"
local compress = require "cluster.apiserver.compress"
local give_way = require "cluster.apiserver.give_way"
local host = require "cluster.host"
local order = require "cluster.apiserver.discovery.order"
local pretty = require "cluster.apiserver.pretty"
local respond = require "cluster.apiserver.respond"
local status = require "cluster.apiserver.status"
local subresources = require "cluster.apiserver.discovery.subresources"

local M = {}


-- Versions that resources are stored in on a real server, where that is none that is served any more.
local STORED = { ["customresourcedefinitions.apiextensions.k8s.io"] = "v1beta1" }

-- registry → { generation =, layout =, texts = path → JSON text, etags = path → ETag }
local caches = setmetatable({}, { __mode = "k" })


-- Groups as the registry has them: { name =, builtin =, versions = { { version =, resources = {…} } … } }, in the order
-- of discovery; the core group has the name "" and stands apart.
local function layout_of(registry)
  local groups, by_name = {}, {}
  for _, res in ipairs(registry:all()) do
    local group = by_name[res.group]
    if not group then
      group = { name = res.group, builtin = res.builtin, versions = {} }
      by_name[res.group] = group
      groups[#groups + 1] = res.group ~= "" and group or nil
    end
    local last = group.versions[#group.versions]
    if not last or last.version ~= res.version then
      last = { version = res.version, resources = {} }
      group.versions[#group.versions + 1] = last
    end
    last.resources[#last.resources + 1] = res
  end
  for _, group in pairs(by_name) do
    table.sort(group.versions, function(a, b)
      return order.version_before(a.version, b.version)
    end)
  end
  table.sort(groups, function(a, b)
    return order.group_before(a.name, b.name)
  end)
  return { groups = groups, by_name = by_name }
end


local function cache_of(registry)
  local cache = caches[registry]
  if not cache or cache.generation ~= registry.generation then
    cache = { generation = registry.generation, layout = layout_of(registry), texts = {}, etags = {} }
    caches[registry] = cache
  end
  return cache
end


--- The hash of what a resource is stored as, nil for kinds that are not stored.
function M.storage_version_hash(res)
  if res.builtin and res.strategy and (res.strategy.review or res.strategy.handlers) then
    return nil
  end
  local group = res.id:match("^[^.]+%.(.+)$") or ""
  local hex = host.sha256(group .. "/" .. (STORED[res.id] or res.storage_version) .. "/" .. res.kind)
  local bytes = hex:sub(1, 16):gsub("%x%x", function(pair)
    return string.char(tonumber(pair, 16))
  end)
  return host.base64.encode(bytes)
end


local function add_resource(list, res)
  list[#list + 1] = {
    name = res.plural, singularName = res.singular, namespaced = res.namespaced, kind = res.kind,
    verbs = subresources.list_or_nil(res.verbs), shortNames = subresources.list_or_nil(res.short),
    categories = subresources.list_or_nil(res.categories), storageVersionHash = M.storage_version_hash(res),
  }
  for _, part in ipairs(subresources.of(res)) do
    list[#list + 1] = {
      name = res.plural .. "/" .. part.name, singularName = "", namespaced = res.namespaced, kind = part.kind,
      group = part.group, version = part.version, verbs = subresources.list_or_nil(part.verbs),
    }
  end
end


local function resource_list(group, version)
  for _, known in ipairs(group and group.versions or {}) do
    if known.version == version then
      local list = host.json.array {}
      for _, res in ipairs(known.resources) do
        add_resource(list, res)
      end
      return {
        kind = "APIResourceList", apiVersion = group.name ~= "" and "v1" or nil,
        groupVersion = known.resources[1].api_version, resources = list,
      }
    end
  end
end


local function group_of(group)
  local versions = host.json.array {}
  for i, known in ipairs(group.versions) do
    versions[i] = { groupVersion = group.name .. "/" .. known.version, version = known.version }
  end
  return { name = group.name, versions = versions, preferredVersion = versions[1] }
end


local function api_group(group)
  local answer = group_of(group)
  answer.kind, answer.apiVersion = "APIGroup", "v1"
  return answer
end


local function group_list(layout)
  local groups = host.json.array {}
  for i, group in ipairs(layout.groups) do
    groups[i] = group_of(group)
  end
  return { kind = "APIGroupList", apiVersion = "v1", groups = groups }
end


local function api_versions(request)
  return {
    kind = "APIVersions", versions = host.json.array { "v1" },
    serverAddressByClientCIDRs = host.json.array {
      { clientCIDR = "0.0.0.0/0", serverAddress = request.headers.host or "" },
    },
  }
end


local function remembered(store, key, make)
  local text = store[key]
  if not text then
    text = make()
    store[key] = text
  end
  return text
end


--- The answer to a discovery request, each group or version on its own.
--- @return table|nil body nil when there is nothing of that name; shares lists with resource descriptions
function M.handle(registry, request)
  local layout, parts = cache_of(registry).layout, request.parts
  if parts[1] == "api" then
    if not parts[2] then
      return api_versions(request)
    end
    return resource_list(layout.by_name[""], parts[2])
  elseif not parts[2] then
    return group_list(layout)
  end
  local group = parts[2] ~= "" and layout.by_name[parts[2]]
  if not group or not parts[3] then
    return group and api_group(group)
  end
  return resource_list(group, parts[3])
end


local function serve_aggregated(request, reply)
  local path = "/" .. request.parts[1]
  local cache = cache_of(request.server.registry)
  local text = remembered(cache.texts, path .. " aggregated", function()
    return host.json.encode(aggregated.document(cache.layout, path)) .. "\n"
  end)
  local etag = remembered(cache.etags, path, function()
    return '"' .. host.sha256(text):upper() .. '"'
  end)
  local headers = { ETag = etag, Vary = "Accept", ["Cache-Control"] = "public" }
  if request.headers["if-none-match"] == etag then
    return reply:send(304, aggregated.MEDIA, "", headers)
  end
  compress.send(request, reply, 200, aggregated.MEDIA, text, headers, give_way)
end


local function not_acceptable(reply)
  local failure = status.not_acceptable { "application/json, application/yaml, application/vnd.kubernetes.protobuf" }
  reply:send(failure.code, "application/json", pretty.json(host.json.encode(failure)))
end


-- The group that the request is about, or nil.
local function asked_group(request)
  local name = request.parts[1] == "api" and "" or request.parts[2]
  return name and cache_of(request.server.registry).layout.by_name[name]
end


-- The answer as JSON text, or nil when there is none.
local function text_of(request)
  if request.parts[1] == "api" and not request.parts[2] then
    return host.json.encode(api_versions(request))
  end
  local registry = request.server.registry
  return remembered(cache_of(registry).texts, table.concat(request.parts, "/"), function()
    local body = M.handle(registry, request)
    return body and host.json.encode(body)
  end)
end


--- Answers a request for /api, /apis and what is below up to a version.
--- @return boolean false when there is nothing at that path; nothing was answered then
function M.serve(request, reply)
  if not request.parts[2] and aggregated.is_preferred(request.headers.accept) then
    serve_aggregated(request, reply)
    return true
  elseif not respond.negotiate(request, reply) then
    return true
  elseif request.accept.as then
    not_acceptable(reply)
    return true
  end
  local text, group = text_of(request), asked_group(request)
  local builtin = group and group.builtin
  if text and builtin and request.method ~= "GET" then
    respond.failure(request, reply, status.method_not_allowed())
  elseif text then
    respond.answer(request, reply, 200, text)
  elseif builtin then
    respond.failure(request, reply, status.no_such_path())
  end
  return text ~= nil or builtin == true
end


return M
