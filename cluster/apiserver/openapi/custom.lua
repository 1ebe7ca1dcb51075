--- Definitions of custom resources as OpenAPI publishes them, made from the schemas of their CRDs.
---
--- Rules: apiextensions-apiserver/pkg/controller/openapi (builder/builder.go, v2/conversion.go).
local common = require("cluster.apiserver.openapi.descriptions").common
local host = require "cluster.host"

local M = {}

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."

local API_VERSION = { type = "string", description = common.apiVersion }
local KIND = { type = "string", description = common.kind }
local INT_OR_STRING = { { type = "integer" }, { type = "string" } }

-- Keywords that hold schemas, by how they hold them.
local MAPS = { properties = true }
local SINGLE = { items = true, additionalProperties = true, ["not"] = true }
local LISTS = { allOf = true, anyOf = true, oneOf = true }

-- Keywords that OpenAPI v2 cannot express.
local NOT_IN_V2 = { allOf = true, anyOf = true, oneOf = true, ["not"] = true, default = true, nullable = true }

-- Keywords that only the server's own tables have.
local OWN = { ["x-go-type"] = true, ["x-kubernetes-group-version-kind"] = true }

-- Properties that every object has; their schemas are the server's.
local EVERYWHERE = { apiVersion = true, kind = true, metadata = true }


local convert


local function convert_map(map, openapi_version)
  local out = {}
  for name, schema in pairs(map) do
    out[name] = convert(schema, openapi_version)
  end
  return out
end


local function convert_value(keyword, value, openapi_version)
  if MAPS[keyword] then
    return convert_map(value, openapi_version)
  elseif SINGLE[keyword] and type(value) == "table" then
    return convert(value, openapi_version)
  elseif LISTS[keyword] then
    local list = host.json.array {}
    for i, schema in ipairs(value) do
      list[i] = convert(schema, openapi_version)
    end
    return list
  end
  return value
end


-- The properties that are the author's alone.
local function own_properties(schema)
  local own = {}
  for name, property in pairs(schema.properties or {}) do
    if not EVERYWHERE[name] then
      own[name] = property
    end
  end
  return own
end


local function add_object_properties(properties, openapi_version, meta)
  properties.apiVersion, properties.kind = API_VERSION, KIND
  properties.metadata = openapi_version:refer(META .. (meta or "ObjectMeta"), { description = common.metadata })
  return properties
end


local function add_once(list, name)
  for _, known in ipairs(list) do
    if known == name then
      return
    end
  end
  list[#list + 1] = name
end


local function embed(schema, out, openapi_version)
  out.properties = add_object_properties(convert_map(own_properties(schema), openapi_version), openapi_version)
  local required = host.json.array {}
  table.move(out.required or {}, 1, #(out.required or {}), 1, required)
  add_once(required, "kind")
  add_once(required, "apiVersion")
  out.required = required
end


-- Required names without those of properties that may be null, which the second version cannot tell from absent ones.
local function requirable(schema, required)
  local list = host.json.array {}
  for _, name in ipairs(required) do
    local property = schema.properties and schema.properties[name]
    if not (property and property.nullable) then
      list[#list + 1] = name
    end
  end
  return list[1] and list or nil
end


-- Takes from a converted schema what kubectl could not read in the second version.
local function make_poor(schema, out)
  local open = schema["x-kubernetes-preserve-unknown-fields"]
  if schema.nullable or open then
    out.items, out.properties = nil, nil
  end
  if schema.nullable or open and out.type == "object" or out.type == "array" and not out.items then
    out.type = nil
  end
  out.required = out.required and requirable(schema, out.required)
end


function convert(schema, openapi_version)
  local out = {}
  local embedded = schema["x-kubernetes-embedded-resource"] and
    (openapi_version.has_all_keywords or not schema["x-kubernetes-preserve-unknown-fields"])
  for keyword, value in pairs(schema) do
    local is_in_version = openapi_version.has_all_keywords or not NOT_IN_V2[keyword]
    if not OWN[keyword] and is_in_version and not (embedded and MAPS[keyword]) then
      out[keyword] = convert_value(keyword, value, openapi_version)
    end
  end
  if embedded then
    embed(schema, out, openapi_version)
  end
  if not openapi_version.has_all_keywords then
    make_poor(schema, out)
  elseif schema["x-kubernetes-int-or-string"] and not out.anyOf and not out.allOf then
    out.anyOf = INT_OR_STRING
  end
  return out
end


local function mark(schema, res, kind)
  schema["x-kubernetes-group-version-kind"] = { { group = res.group, kind = kind, version = res.version } }
  return schema
end


--- The full name of the definition of a custom kind: "com.example.stable.v1.CronTab".
function M.name(res, kind)
  local words = {}
  for word in res.group:gmatch("[^.]+") do
    table.insert(words, 1, word)
  end
  return table.concat(words, ".") .. "." .. res.version .. "." .. kind
end


--- The definition of a custom resource.
function M.schema(res, openapi_version)
  local schema = res.read_schema and res:read_schema() or res.schema
  local open = schema and schema["x-kubernetes-preserve-unknown-fields"]
  if not schema or open and not openapi_version.has_all_keywords then
    return mark({ type = "object" }, res, res.kind)
  end
  local top = {}
  for keyword, value in pairs(schema) do
    top[keyword] = value
  end
  top.properties = own_properties(schema)
  local out = convert(top, openapi_version)
  add_object_properties(out.properties, openapi_version)
  return mark(out, res, res.kind)
end


--- The definition of the list of a custom resource.
function M.list_schema(res, openapi_version)
  return mark({
    description = res.list_kind .. " is a list of " .. res.kind, type = "object", required = { "items" },
    properties = add_object_properties({
      items = { type = "array", items = openapi_version:refer(M.name(res, res.kind)) },
    }, openapi_version, "ListMeta"),
  }, res, res.list_kind)
end


return M
