--- The types of CEL that kinds have: made from the definitions that OpenAPI publishes of them, a field when it is first
--- asked for. The type check of policies uses them; rules of CRDs have types of their own: crd/rules/types.lua.
---
--- A field whose type CEL does not have (a quantity, any JSON) is left out, and so is a list or a map of such. A
--- definition that is met again within itself is an object without fields. Rules: apiserver/pkg/cel/common/schemas.go,
--- apiserver/pkg/cel/openapi/resolver/refs.go, apiserver/pkg/cel/types.go (MaybeAssignTypeName).
local builtin = require "cluster.apiserver.schema.builtin"
local cel = require "cluster.cel"
local custom = require "cluster.apiserver.openapi.custom"
local definitions = require "cluster.apiserver.openapi.definitions"
local escape = require "cluster.apiserver.crd.rules.escape"
local openapi_version = require("cluster.apiserver.openapi.openapi_versions").v3

local M = {}

local types = cel.types

local CIRCULAR = { type = "object" }
local FORMATS = {
  byte = types.bytes, duration = types.duration, date = types.timestamp, ["date-time"] = types.timestamp,
}
local SCALARS = { boolean = types.bool, number = types.double, integer = types.int }


-- The full name of the definition that a schema refers to, or nil.
local function referred(schema)
  local reference = schema["$ref"]
  for _, part in ipairs(not reference and schema.allOf or {}) do
    reference = reference or part["$ref"]
  end
  return reference and reference:sub(#openapi_version.prefix + 1)
end


local declare


-- Property by the name that expressions have for it; a reserved word is known by itself, too.
local function names_of(properties)
  local names = {}
  for key in pairs(properties or {}) do
    local identifier = escape(key)
    if identifier == "__" .. key .. "__" then
      names[key] = key
    end
    if identifier then
      names[identifier] = key
    end
  end
  return names
end


local function declare_object(schema, name, seen, find)
  local names, known
  return types.object(name, function(field)
    if not names then
      names, known = names_of(schema.properties), {}
    end
    local key = names[field]
    if key and known[key] == nil then
      local type = declare(schema.properties[key], name .. "." .. (escape(key)), seen, find)
      known[key] = type and { type = type } or false
    end
    return key and known[key] or nil
  end)
end


-- The type of a schema, or nil. `seen` has the definitions that it stands in; find(name) is a definition.
function declare(schema, name, seen, find)
  local reference = referred(schema)
  if reference and seen[reference] then
    schema = CIRCULAR
  elseif reference then
    schema, seen = find(reference), setmetatable({ [reference] = true }, { __index = seen })
  end
  if schema["x-kubernetes-int-or-string"] or schema.format == "int-or-string" then
    return types.dyn
  elseif schema.type == "array" then
    local item = schema.items and declare(schema.items, name .. ".@idx", seen, find)
    return item and types.list(item)
  elseif schema.type == "object" and type(schema.additionalProperties) == "table" then
    local item = declare(schema.additionalProperties, name .. ".@elem", seen, find)
    return item and types.map(types.string, item)
  elseif schema.type == "object" then
    return declare_object(schema, name, seen, find)
  elseif schema.type == "string" then
    return FORMATS[schema.format] or types.string
  end
  return SCALARS[schema.type]
end


--- The type of a kind.
--- @param res table its description  @param name string of the type, which messages show: one of its own
--- @return table
function M.of(res, name)
  local full = builtin.name_of(res.group, res.version, res.kind) or custom.name(res, res.kind)
  local found = {}
  local function find(reference)
    found[reference] = found[reference] or definitions.schema(reference, openapi_version)
      or custom.schema(res, openapi_version)
    return found[reference]
  end
  return declare({ ["$ref"] = openapi_version.prefix .. full }, name, {}, find)
end


return M
