--- OpenAPI documents of the served resources: one for all in version 2, one for each group version in version 3.
---
--- Rules: kube-openapi/pkg/handler and handler3; the list of documents: kube-aggregator's controllers for OpenAPI.
--- A document is made for its first request, and cached until a resource in it changes; that of all resources in
--- gzip's format, a fifth of its size. Its ETag is known without it where custom kinds are in it: theirs are many, and
--- large.
local compress = require "cluster.apiserver.compress"
local document = require "cluster.apiserver.openapi.document"
local give_way = require "cluster.apiserver.give_way"
local host = require "cluster.host"
local operations = require "cluster.apiserver.openapi.operations"
local protobuf = require "cluster.apiserver.openapi.protobuf"

local M = {}

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."
local JSON = "application/json"

-- Bytes of a document from which on its garbage is worth a collection.
local GARBAGE_MIN = 4 * 1024 * 1024

local PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

-- Media types by what is asked for; "@" is the old way to write the name of the protobuf form.
local FORMS_V2 = {
  [JSON] = JSON, ["application/*"] = JSON, ["*/*"] = JSON, [PROTOBUF_V2] = PROTOBUF_V2,
  ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf"] = PROTOBUF_V2,
}
local FORMS_V3 = { [JSON] = JSON, ["application/*"] = JSON, ["*/*"] = JSON }

-- registry → { generation =, documents = name → { resources =, extra = }, made = name → what `made` makes }
local caches = setmetatable({}, { __mode = "k" })

-- name → what `made` makes, of the documents that have built-in kinds only. They are alike on all servers of a process,
-- and `moonloop test` starts a server for each test.
local made_of_builtin = {}

-- Serial numbers of resource descriptions; a changed resource has a new description.
local serials, last_serial = setmetatable({}, { __mode = "k" }), 0


local function word_of(res)
  if res.builtin then
    return res.api_version .. "/" .. res.plural
  end
  if not serials[res] then
    last_serial = last_serial + 1
    serials[res] = last_serial
  end
  return serials[res]
end


-- A key for a list of resource descriptions: equal lists have equal keys. The second value is true when all of them are
-- of built-in kinds, which have the same key on each server.
local function key_of(resources)
  local words, are_builtin = {}, true
  for i, res in ipairs(resources) do
    words[i] = word_of(res)
    are_builtin = are_builtin and res.builtin
  end
  return table.concat(words, " "), are_builtin
end


-- The ETag of a document with custom kinds; nil for one of built-in kinds only.
local function etag_of_kinds(resources)
  local words, custom = {}, false
  for i, res in ipairs(resources) do
    custom = custom or res.fingerprint ~= nil
    words[i] = res.fingerprint or res.api_version .. " " .. res.plural
  end
  return custom and host.sha256(table.concat(words, "\n")):upper() or nil
end


local function add_group(documents, res)
  local name = "apis/" .. res.group
  if res.group ~= "" and res.builtin and not documents[name] then
    documents[name] = { resources = {}, extra = { ["/" .. name .. "/"] = {
      id = operations.id("get", res.group, "", "APIGroup"), tag = operations.tag(res.group), gives = META .. "APIGroup",
    } } }
  end
end


local function version_document(res, name)
  local extra = {}
  if res.builtin then
    extra["/" .. name .. "/"] = {
      id = operations.id("get", res.group, res.version, "APIResources"), tag = operations.tag(res.group, res.version),
      gives = META .. "APIResourceList",
    }
  end
  return { resources = {}, extra = extra }
end


-- Which documents there are: name ("apis/apps/v1") → what is in it.
local function documents_of(registry)
  local documents = {
    api = { resources = {}, extra = { ["/api/"] = {
      id = "getCoreAPIVersions", tag = "core", gives = META .. "APIVersions",
    } } },
    apis = { resources = {}, extra = { ["/apis/"] = {
      id = "getAPIVersions", tag = "apis", gives = META .. "APIGroupList",
    } } },
  }
  for _, res in ipairs(registry:all()) do
    local name = (res.group == "" and "api/" or "apis/" .. res.group .. "/") .. res.version
    add_group(documents, res)
    documents[name] = documents[name] or version_document(res, name)
    table.insert(documents[name].resources, res)
  end
  return documents
end


local function cache_of(registry)
  local cache = caches[registry] or { made = {} }
  if cache.generation ~= registry.generation then
    cache.generation = registry.generation
    cache.documents = documents_of(registry)
    caches[registry] = cache
  end
  return cache
end


-- A document, another one when its resources are others than the last time: { make =, text =, etag = }. Text and etag
-- are made when they are asked for.
local function made(places, name, key, resources, make)
  local cached = places[name]
  if not cached or cached.key ~= key then
    cached = { key = key, make = make, etag = etag_of_kinds(resources) }
    places[name] = cached
  end
  return cached
end


-- Likewise, one whose text is kept: of all servers, if it has built-in kinds only.
local function made_once(cache, name, resources, make)
  local key, are_builtin = key_of(resources)
  return made(are_builtin and made_of_builtin or cache.made, name, key, resources, make)
end


-- Work on a large text leaves several times as much garbage, which is freed soon.
local function release_after(text)
  if #text > GARBAGE_MIN then
    host.defer(host.release_memory)
  end
end


-- The document of all resources is put together anew from the pieces that document.lua keeps: it is as large as all of
-- them.
local function text_of(cached)
  local text = cached.text or cached.make()
  if not cached.is_joined then
    cached.text, cached.make = text, nil
  else
    release_after(text)
  end
  return text
end


local function etag_of(cached)
  cached.etag = cached.etag or host.sha256(text_of(cached)):upper()
  return cached.etag
end


local function all_extra(registry)
  local extra = {}
  for _, cached in pairs(cache_of(registry).documents) do
    for path, about in pairs(cached.extra) do
      extra[path] = about
    end
  end
  return extra
end


local function made_v2(registry, protobuf_wanted)
  local name = protobuf_wanted and "v2 protobuf" or "v2"
  local resources = registry:all()
  local cached = made(cache_of(registry).made, name, key_of(resources), resources, function()
    return (protobuf_wanted and protobuf.document or document.v2)(registry:all(), all_extra(registry))
  end)
  cached.is_joined = true
  return cached
end


local function made_v3(registry, name)
  local cache = cache_of(registry)
  local cached = cache.documents[name]
  return cached and made_once(cache, name, cached.resources, function()
    return document.v3(cached.resources, cached.extra)
  end)
end


local function made_index(registry)
  local cache = cache_of(registry)
  return made_once(cache, "v3", registry:all(), function()
    local paths = {}
    for name in pairs(cache.documents) do
      local etag = etag_of(made_v3(registry, name))
      paths[name] = { serverRelativeURL = ("/openapi/v3/%s?hash=%s"):format(name, etag) }
    end
    return host.json.encode { paths = paths }
  end)
end


--- The document of the second version as JSON text.
function M.v2(registry)
  return text_of(made_v2(registry))
end


--- The document of the second version in protobuf.
function M.v2_protobuf(registry)
  return text_of(made_v2(registry, true))
end


--- The index of documents of the third version as JSON text.
function M.v3_index(registry)
  return text_of(made_index(registry))
end


--- A document of the third version as JSON text, or nil when there is none of that name ("apis/apps/v1").
function M.v3(registry, name)
  local cached = made_v3(registry, name)
  return cached and text_of(cached)
end


-- The first of the media types asked for that can be had.
local function negotiate(request, media_types)
  local header = request.headers.accept
  for clause in (header ~= nil and header ~= "" and header or "*/*"):gmatch("[^,]+") do
    local found = media_types[clause:match("^%s*([^;%s]*)")]
    if found then
      return found
    end
  end
end


local function not_acceptable(reply)
  reply:send(406, "text/plain; charset=utf-8", "")
end


-- True if one of the ETags that a client has is the current one, as net/http reads the header.
local function is_current(request, etag)
  local header = request.headers["if-none-match"] or ""
  if header:match "^%s*%*" then
    return true
  end
  for known in header:gmatch '"[^"]*"' do
    if known == etag then
      return true
    end
  end
  return false
end


-- Sends what was made, or only says that what the client has is still good.
-- @param compressed function|nil that gives the text in gzip's format, where the client may have it so
local function send(request, reply, media, cached, headers, compressed)
  headers.ETag = '"' .. etag_of(cached) .. '"'
  if is_current(request, headers.ETag) then
    return reply:send(304, media, "", headers)
  elseif compressed and compress.is_wanted(request) then
    headers["Content-Encoding"] = "gzip"
    return reply:send(200, media, compressed(), headers)
  end
  reply:send(200, media, text_of(cached), headers)
end


-- A document in gzip's format, which is kept with it.
local function gzip_of(cached, request)
  if not cached.gzip then
    local text = text_of(cached)
    cached.gzip = compress.gzip(text, function() give_way(request) end)
    release_after(text)
  end
  return cached.gzip
end


local function serve_v2(request, reply, registry)
  local media = negotiate(request, FORMS_V2)
  if not media then
    return not_acceptable(reply)
  end
  local cached = made_v2(registry, media == PROTOBUF_V2)
  send(request, reply, media, cached, { Vary = "Accept, Accept-Encoding" }, function()
    return gzip_of(cached, request)
  end)
end


local function serve_v3(request, reply, registry, name)
  local media, cached = negotiate(request, FORMS_V3), made_v3(registry, name)
  if not media then
    return not_acceptable(reply)
  elseif not cached then
    return reply:send(200, "text/plain; charset=utf-8", "")
  end
  local hash, headers = request.query.hash and request.query.hash[1] or "", { Vary = "Accept" }
  if hash ~= "" and hash ~= etag_of(cached) then
    headers.Location = ("/openapi/v3/%s?hash=%s"):format(name, etag_of(cached))
    return reply:send(301, "text/html; charset=utf-8", "", headers)
  elseif hash ~= "" then
    headers["Cache-Control"] = "public, immutable"
  end
  send(request, reply, media, cached, headers)
end


--- Answers a request for /openapi/….
--- @return boolean false when there is nothing at that path; nothing was answered then
function M.serve(request, reply)
  local parts, registry = request.parts, request.server.registry
  if parts[2] == "v2" and not parts[3] then
    serve_v2(request, reply, registry)
  elseif parts[2] == "v3" and not parts[3] then
    send(request, reply, "text/plain; charset=utf-8", made_index(registry), {})
  elseif parts[2] == "v3" then
    serve_v3(request, reply, registry, table.concat(parts, "/", 3))
  else
    return false
  end
  return true
end


return M
