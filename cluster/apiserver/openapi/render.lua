--- Writes operations (operations.lua) for the two versions of OpenAPI.
local host = require "cluster.host"
local operations = require "cluster.apiserver.openapi.operations"

local M = {}

local MEDIA = { "application/json", "application/yaml" }
local LIST_MEDIA = { "application/json", "application/json;stream=watch", "application/yaml" }
local PATCH_MEDIA = { "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json" }
local PATCH_BUILTIN_MEDIA = {
  "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
  "application/strategic-merge-patch+json",
}
local ANY_MEDIA = { "*/*" }
local DONE = { [200] = "OK", [201] = "Created", [202] = "Accepted" }


local function media_sent(operation, res)
  if operation.verb == "patch" then
    return res.builtin and PATCH_BUILTIN_MEDIA or PATCH_MEDIA
  end
  return res.builtin and ANY_MEDIA or MEDIA
end


local function media_got(operation, res)
  return operation.verb == "list" and res.builtin and LIST_MEDIA or MEDIA
end


local V3, V2 = {}, {}


-- A parameter: where is "query" or "path".
function V3.parameter(name, where)
  return {
    name = name, ["in"] = where, required = where == "path" or nil,
    schema = { type = operations.types[name] or "string", uniqueItems = true },
  }
end


function V2.parameter(name, where)
  return {
    name = name, ["in"] = where, required = where == "path" or nil, type = operations.types[name] or "string",
    uniqueItems = true,
  }
end


local function content(media, openapi_version, name)
  local map = {}
  for _, kind in ipairs(media) do
    map[kind] = { schema = openapi_version:refer(name) }
  end
  return map
end


function V3.add_bodies(out, operation, res, openapi_version)
  for _, code in ipairs(operation.codes) do
    out.responses[tostring(code)] = {
      description = DONE[code], content = content(media_got(operation, res), openapi_version, operation.gives),
    }
  end
  if operation.takes then
    out.requestBody = {
      content = content(media_sent(operation, res), openapi_version, operation.takes),
      required = operation.must_send or nil,
    }
  end
end


function V2.add_bodies(out, operation, res, openapi_version)
  out.schemes = { "https" }
  out.produces = media_got(operation, res)
  out.consumes = media_sent(operation, res)
  for _, code in ipairs(operation.codes) do
    out.responses[tostring(code)] = { description = DONE[code], schema = openapi_version:refer(operation.gives) }
  end
  if operation.takes then
    out.parameters = out.parameters or host.json.array {}
    table.insert(out.parameters, 1, {
      name = "body", ["in"] = "body", required = operation.must_send or nil,
      schema = openapi_version:refer(operation.takes),
    })
  end
end


local function parameters_of(names, where, writer)
  local list = host.json.array {}
  for i, name in ipairs(names) do
    list[i] = writer.parameter(name, where)
  end
  return list
end


local function render_operation(operation, res, openapi_version, writer)
  local out = {
    operationId = operation.id, tags = { operation.tag }, responses = { ["401"] = { description = "Unauthorized" } },
    ["x-kubernetes-action"] = operation.action, ["x-kubernetes-group-version-kind"] = operation.kind,
  }
  if operation.parameters[1] then
    out.parameters = parameters_of(operation.parameters, "query", writer)
  end
  writer.add_bodies(out, operation, res, openapi_version)
  return out
end


--- The path items of a resource, path → item.
--- @param openapi_version table one of openapi_versions.lua
function M.paths(res, openapi_version)
  local writer = openapi_version.has_all_keywords and V3 or V2
  local items = {}
  for _, entry in ipairs(operations.of(res)) do
    local item = { parameters = parameters_of(entry.names, "path", writer) }
    table.insert(item.parameters, writer.parameter("pretty", "query"))
    for _, operation in ipairs(entry.operations) do
      item[operation.method] = render_operation(operation, res, openapi_version, writer)
    end
    items[entry.path] = item
  end
  return items
end


--- A path item of discovery: a GET that answers with a kind of meta/v1.
--- @param about table id, tag, gives (full name of a definition)
function M.discovery_item(about, openapi_version)
  local writer = openapi_version.has_all_keywords and V3 or V2
  local operation = { verb = "get", codes = { 200 }, gives = about.gives }
  local out = {
    operationId = about.id, tags = { about.tag }, responses = { ["401"] = { description = "Unauthorized" } },
  }
  writer.add_bodies(out, operation, { builtin = true }, openapi_version)
  return { get = out }
end


return M
