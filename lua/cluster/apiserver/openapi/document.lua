--- Builds documents from the paths and definitions of resources.
---
--- The text of each resource and definition is cached, so a new kind costs only its own text.
local builtin = require "cluster.apiserver.schema.builtin"
local custom = require "cluster.apiserver.openapi.custom"
local definitions = require "cluster.apiserver.openapi.definitions"
local forms = require "cluster.apiserver.openapi.form"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
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

local kept = { v2 = setmetatable({}, { __mode = "k" }), v3 = setmetatable({}, { __mode = "k" }) }
local texts = { v2 = {}, v3 = {} }


-- Names of all built-in definitions that a resource's paths and definitions need.
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
  return set
end


-- A custom resource's own definitions, name → schema.
local function own_definitions(res, form)
  if res.builtin then
    return {}
  end
  return {
    [custom.name(res, res.kind)] = custom.schema(res, form),
    [custom.name(res, res.list_kind)] = custom.list_schema(res, form),
  }
end


--- What a resource brings into a document.
--- @return table { paths = path → item, own = name → schema, needed = set of names of built-in definitions }; shared,
---   not to be changed
function M.parts_of(res, form)
  local store = kept[form.name]
  local parts = store[res]
  if not parts then
    parts = { paths = render.paths(res, form), own = own_definitions(res, form), needed = needed_by(res) }
    store[res] = parts
  end
  return parts
end


--- Puts what resources bring, and paths of discovery, into one.
--- @param resources table list of resource descriptions
--- @param extra table path → { id =, tag =, gives = }
--- @return table { paths = path → item, own = name → schema, names = sorted names of built-in definitions }
function M.gather(resources, extra, form)
  local paths, own, needed = {}, {}, {}
  for path, about in pairs(extra) do
    paths[path] = render.discovery_item(about, form)
    definitions.collect(about.gives, needed)
  end
  for _, res in ipairs(resources) do
    local parts = M.parts_of(res, form)
    for path, item in pairs(parts.paths) do
      paths[path] = item
    end
    for name, schema in pairs(parts.own) do
      own[name] = schema
    end
    for name in pairs(parts.needed) do
      needed[name] = true
    end
  end
  return { paths = paths, own = own, names = gofmt.sorted_keys(needed) }
end


local function definition_text(name, form)
  local text = texts[form.name][name]
  if not text then
    text = ('"%s":%s'):format(name, host.json.encode(definitions.schema(name, form)))
    texts[form.name][name] = text
  end
  return text
end


local function definitions_text(gathered, form)
  local list = {}
  for i, name in ipairs(gathered.names) do
    list[i] = definition_text(name, form)
  end
  for _, name in ipairs(gofmt.sorted_keys(gathered.own)) do
    list[#list + 1] = ('"%s":%s'):format(name, host.json.encode(gathered.own[name]))
  end
  return "{" .. table.concat(list, ",") .. "}"
end


--- A document of the third version as JSON text.
function M.v3(gathered)
  return table.concat {
    '{"openapi":"3.0.0","info":', INFO, ',"paths":', host.json.encode(gathered.paths),
    ',"components":{"schemas":', definitions_text(gathered, forms.v3), ',"securitySchemes":', SECURITY, "}}",
  }
end


--- The document of the second version as JSON text.
function M.v2(gathered)
  return table.concat {
    '{"swagger":"2.0","info":', INFO, ',"paths":', host.json.encode(gathered.paths), ',"definitions":',
    definitions_text(gathered, forms.v2), ',"securityDefinitions":', SECURITY, ',"security":[{"BearerToken":[]}]}',
  }
end


return M
