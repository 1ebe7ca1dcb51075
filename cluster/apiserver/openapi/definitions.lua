--- Definitions of the built-in kinds as OpenAPI publishes them: the schemas of schema/builtin.lua, with references.
local builtin = require "cluster.apiserver.schema.builtin"
local descriptions = require "cluster.apiserver.openapi.descriptions"
local notation = require "cluster.apiserver.schema.notation"

local M = {}

local STRING, INTEGER, NUMBER = { type = "string" }, { type = "integer" }, { type = "number" }

-- Definitions that the notation has words for, in each version of OpenAPI.
local WORDS = {
  [notation.words.Quantity] = { v2 = STRING, v3 = { oneOf = { STRING, NUMBER } } },
  [notation.words.IntOrString] = {
    v2 = { type = "string", format = "int-or-string" },
    v3 = { format = "int-or-string", oneOf = { INTEGER, STRING } },
  },
  [notation.words.RawExtension] = { v2 = { type = "object" }, v3 = { type = "object" } },
}


local type_schema


-- Defaults stand where the version of OpenAPI has a keyword for them.
local function default_in(openapi_version, default)
  if openapi_version.has_all_keywords then
    return default
  end
  return nil
end


local function item_schema(kind, openapi_version, enum)
  return type_schema(kind, openapi_version, default_in(openapi_version, builtin.item_default(kind)), enum)
end


-- The schema of a value of type `kind`. `enum` belongs to its innermost items.
function type_schema(kind, openapi_version, default, enum)
  if kind.ref then
    return openapi_version:refer(kind.ref, { default = default })
  elseif kind.list then
    return { type = "array", items = item_schema(kind.list, openapi_version, enum), default = default }
  elseif kind.map then
    return { type = "object", additionalProperties = item_schema(kind.map, openapi_version, enum), default = default }
  end
  return { type = kind.type, format = kind.format, default = default, enum = enum }
end


-- The description of a field: our sentence on it, and its possible values.
local function description_of(name, field)
  local sentence = descriptions.of_field(name, field.name)
  if not field.enum then
    return sentence
  end
  local choices = "Possible enum values:\n - `\"" .. table.concat(field.enum, "\"`\n - `\"") .. "\"`"
  return sentence and sentence .. "\n\n" .. choices or choices
end


local function field_schema(field, openapi_version, description)
  local kind, default = field.type, default_in(openapi_version, builtin.field_default(field))
  if kind.ref then
    return openapi_version:refer(kind.ref, {
      default = default, description = description, ["x-kubernetes-patch-strategy"] = field.patch,
      ["x-kubernetes-map-type"] = field.map_type,
    })
  end
  local schema = type_schema(kind, openapi_version, default, field.enum)
  schema.description = description
  schema["x-kubernetes-list-type"] = field.list_type
  schema["x-kubernetes-list-map-keys"] = field.list_keys
  schema["x-kubernetes-map-type"] = field.map_type
  schema["x-kubernetes-patch-strategy"] = field.patch
  schema["x-kubernetes-patch-merge-key"] = field.merge_key
  return schema
end


local function plain_schema(record)
  if record.plain == "date-time" then
    return { type = "string", format = "date-time" }
  end
  return { type = record.plain == "object" and "object" or nil }
end


local function object_schema(name, record, openapi_version)
  local properties, required = {}, {}
  for _, field in ipairs(record.fields) do
    properties[field.name] = field_schema(field, openapi_version, description_of(name, field))
    required[#required + 1] = field.required and field.name or nil
  end
  local kind = record.kind and { group = record.package.group, kind = record.name, version = "v1" }
  return {
    type = "object", properties = properties, required = required[1] and required or nil,
    ["x-kubernetes-map-type"] = record.map_type,
    ["x-kubernetes-group-version-kind"] = kind and { kind } or nil,
  }
end


--- The schema of definition `name` ("io.k8s.api.core.v1.PodSpec"), a table of the caller's own, or nil.
--- @param openapi_version table one of openapi_versions.lua
function M.schema(name, openapi_version)
  local schema = {}
  if WORDS[name] then
    for key, value in pairs(WORDS[name][openapi_version.name]) do
      schema[key] = value
    end
  else
    local record = builtin.record(name)
    if not record then
      return nil
    end
    schema = record.plain and plain_schema(record) or object_schema(name, record, openapi_version)
  end
  schema.description = descriptions.of(name)
  return schema
end


local function innermost(kind)
  while kind.list or kind.map do
    kind = kind.list or kind.map
  end
  return kind
end


--- Adds `name` and all that it refers to, directly or not, to `set`.
--- @param set table name → true
function M.collect(name, set)
  if set[name] then
    return
  end
  set[name] = true
  local record = not WORDS[name] and builtin.record(name)
  for _, field in ipairs(record and record.fields or {}) do
    local ref = innermost(field.type).ref
    if ref then
      M.collect(ref, set)
    end
  end
end


return M
