--- Builds documents from the paths and definitions of resources.
---
--- A writer (json below, protobuf.lua) turns each path and each definition into a piece of text; the pieces of all
--- resources, one behind the other, are the document. The pieces of the document of all resources are kept, so a new
--- kind costs only its own; the schemas of custom kinds are read for it, and not kept.
local builtin = require "cluster.apiserver.schema.builtin"
local custom = require "cluster.apiserver.openapi.custom"
local definitions = require "cluster.apiserver.openapi.definitions"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local openapi_versions = require "cluster.apiserver.openapi.openapi_versions"
local operations = require "cluster.apiserver.openapi.operations"
local render = require "cluster.apiserver.openapi.render"

local M = {}

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."

M.info = { title = "Kubernetes", version = "1.36" }
M.security = {
  BearerToken = {
    description = "Bearer Token authentication", ["in"] = "header", name = "authorization", type = "apiKey",
  },
}

local INFO = host.json.encode(M.info)
local SECURITY = host.json.encode(M.security)

local sets = setmetatable({}, { __mode = "v" })   -- names of a set in a row → the set: many resources need the same


local function member(name, value)
  return host.json.encode(name) .. ":" .. host.json.encode(value)
end


-- A writer of JSON. `parts`: resource → its pieces; nil: they are not kept. `texts`: name of a built-in definition →
-- its piece. `path` and `definition` make a piece of a name and the value that it names.
local function json(openapi_version, parts)
  return { openapi_version = openapi_version, parts = parts, texts = {}, path = member, definition = member }
end


M.v2_writer = json(openapi_versions.v2, setmetatable({}, { __mode = "k" }))
M.v3_writer = json(openapi_versions.v3, nil)


-- Names of all built-in definitions that a resource's paths and definitions need, as a set.
local function needed_by(res)
  local set = {}
  local function need(name)
    if name and (builtin.record(name)) then
      definitions.collect(name, set)
    end
  end
  for _, entry in ipairs(operations.of(res)) do
    for _, operation in ipairs(entry.operations) do
      need(operation.takes)
      need(operation.gives)
    end
  end
  need(builtin.name_of(res.group, res.version, res.kind))
  need(not res.builtin and META .. "ObjectMeta" or nil)
  local key = table.concat(gofmt.sorted_keys(set), " ")
  sets[key] = sets[key] or set
  return sets[key]
end


-- The definitions of its own that a custom resource has, as pieces.
local function own_pieces(res, writer)
  if res.builtin then
    return {}
  end
  local openapi_version = writer.openapi_version
  return {
    writer.definition(custom.name(res, res.kind), custom.schema(res, openapi_version)),
    writer.definition(custom.name(res, res.list_kind), custom.list_schema(res, openapi_version)),
  }
end


local function path_pieces(res, writer)
  local pieces, items = {}, render.paths(res, writer.openapi_version)
  for i, path in ipairs(gofmt.sorted_keys(items)) do
    pieces[i] = writer.path(path, items[path])
  end
  return pieces
end


-- The pieces that a resource brings: { paths = pieces, own = pieces of definitions, needed = set of names }.
local function parts_of(res, writer)
  local known = writer.parts and writer.parts[res]
  if not known then
    known = { paths = path_pieces(res, writer), own = own_pieces(res, writer), needed = needed_by(res) }
    if writer.parts then
      writer.parts[res] = known
    end
  end
  return known
end


local function builtin_piece(name, writer)
  local text = writer.texts[name]
  if not text then
    text = writer.definition(name, definitions.schema(name, writer.openapi_version))
    writer.texts[name] = text
  end
  return text
end


local function append(list, more)
  table.move(more, 1, #more, #list + 1, list)
end


--- Puts what resources bring, and paths of discovery, into one.
--- @param resources table list of resource descriptions
--- @param extra table path → { id =, tag =, gives = }
--- @return table paths, table definitions lists of pieces
function M.gather(resources, extra, writer)
  local paths, own, needed = {}, {}, {}
  for _, path in ipairs(gofmt.sorted_keys(extra)) do
    paths[#paths + 1] = writer.path(path, render.discovery_item(extra[path], writer.openapi_version))
    definitions.collect(extra[path].gives, needed)
  end
  for _, res in ipairs(resources) do
    local parts = parts_of(res, writer)
    append(paths, parts.paths)
    append(own, parts.own)
    for name in pairs(parts.needed) do
      needed[name] = true
    end
  end
  local pieces = {}
  for i, name in ipairs(gofmt.sorted_keys(needed)) do
    pieces[i] = builtin_piece(name, writer)
  end
  append(pieces, own)
  return paths, pieces
end


-- Texts, and lists of pieces that become objects, as one text. All is copied once: it is large.
local function joined(parts)
  local list = {}
  for _, part in ipairs(parts) do
    if type(part) == "string" then
      list[#list + 1] = part
    else
      list[#list + 1] = "{"
      for i, piece in ipairs(part) do
        list[#list + 1] = i > 1 and "," or nil
        list[#list + 1] = piece
      end
      list[#list + 1] = "}"
    end
  end
  return table.concat(list)
end


--- A document of the third version as JSON text.
function M.v3(resources, extra)
  local paths, schemas = M.gather(resources, extra, M.v3_writer)
  return joined {
    '{"openapi":"3.0.0","info":', INFO, ',"paths":', paths, ',"components":{"schemas":', schemas,
    ',"securitySchemes":', SECURITY, "}}",
  }
end


--- The document of the second version as JSON text.
function M.v2(resources, extra)
  local paths, schemas = M.gather(resources, extra, M.v2_writer)
  return joined {
    '{"swagger":"2.0","info":', INFO, ',"paths":', paths, ',"definitions":', schemas, ',"securityDefinitions":',
    SECURITY, ',"security":[{"BearerToken":[]}]}',
  }
end


return M
