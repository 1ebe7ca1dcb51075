--- Schemas of kinds, as a CustomResourceDefinition or the OpenAPI of an API server has them: the fields of objects.
local M = {}

-- The fields of ObjectMeta. CRDs do not have them.
-- Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go, ObjectMeta and OwnerReference.
local STRING, INTEGER, BOOLEAN = { type = "string" }, { type = "integer" }, { type = "boolean" }
local STRINGS = { type = "object", additionalProperties = STRING }
local OWNER = {
  type = "object",
  properties = {
    apiVersion = STRING, kind = STRING, name = STRING, uid = STRING, controller = BOOLEAN, blockOwnerDeletion = BOOLEAN,
  },
}
local METADATA = {
  type = "object",
  properties = {
    annotations = STRINGS, creationTimestamp = STRING, deletionGracePeriodSeconds = INTEGER,
    deletionTimestamp = STRING, finalizers = { type = "array", items = STRING }, generateName = STRING,
    generation = INTEGER, labels = STRINGS, managedFields = { type = "array" }, name = STRING, namespace = STRING,
    ownerReferences = { type = "array", items = OWNER }, resourceVersion = STRING, selfLink = STRING, uid = STRING,
  },
}
--- The metadata of any object.
M.metadata = { is = "object", schema = METADATA, path = "metadata", of = "An object" }

local ROOT = { apiVersion = STRING, kind = STRING, metadata = METADATA }
local REFERENCE, ANYTHING = "^#/components/schemas/(.+)$", {}
local MAY_BE_EMPTY = { spec = true, status = true } -- an empty table where an object has none

--- The object of a kind, "apps/v1/Deployment", or nil when its schema is not known.
--- @param schema_of function(group, version, kind) → schema, or nil; second: the definitions that it refers to by name
function M.root(schema_of, kind)
  local group, version, name = kind:match "^(.-)/?([^/]+)/([^/]+)$"
  if not group then
    return nil
  end
  local schema, definitions = schema_of(group, version, name)
  return schema and {
    is = "object", schema = schema, path = "", of = ("%s of %s"):format(name, kind:match "^(.*)/"), is_root = true,
    kind = kind, definitions = definitions,
  } or nil
end


-- The definition that a schema refers to, also by { allOf = { { ["$ref"] = … } }, default = … }; else the schema.
local function resolve(schema, definitions)
  local target = schema["$ref"]
  if target == nil and type(schema.allOf) == "table" and #schema.allOf == 1 and type(schema.allOf[1]) == "table" then
    target = schema.allOf[1]["$ref"]
  end
  local name = type(target) == "string" and target:match(REFERENCE)
  return name and (definitions and definitions[name] or ANYTHING) or schema
end


local function is_open(schema)
  return schema["x-kubernetes-preserve-unknown-fields"] or schema["x-kubernetes-embedded-resource"]
    or schema.additionalProperties ~= nil or type(schema.properties) ~= "table"
end


-- The names that a schema has, in one string.
local function names_of(schema, is_root)
  local list = {}
  for name in pairs(schema.properties) do
    list[#list + 1] = name
  end
  for name in pairs(is_root and ROOT or {}) do
    list[#list + 1] = schema.properties[name] == nil and name or nil
  end
  table.sort(list)
  return table.concat(list, " ")
end


local function part(object, schema, path)
  local definitions = object.definitions
  return {
    is = "object", schema = resolve(schema, definitions), path = path, of = object.of, kind = object.kind,
    definitions = definitions,
  }
end


--- The type of a field of an object; nil: nothing is known. Second: the names that there are, if this is none of them.
function M.field(object, name)
  local schema = object.schema
  local properties = schema.properties
  local child = object.is_root and ROOT[name] or type(properties) == "table" and properties[name]
  local values = schema.additionalProperties
  if not child and type(values) == "table" and type(properties) ~= "table" then
    child = values
  end
  if type(child) == "table" then
    return part(object, child, object.path == "" and name or object.path .. "." .. name)
  elseif is_open(schema) or object.is_root and MAY_BE_EMPTY[name] then
    return nil
  end
  return nil, names_of(schema, object.is_root)
end


--- The type of x[i], and of the values that ipairs and pairs give; or nil.
function M.item(object)
  local schema = object.schema
  local values = schema.items or schema.properties == nil and schema.additionalProperties
  return type(values) == "table" and part(object, values, object.path .. "[]") or nil
end


--- "string", "integer", "number", "boolean", "array", "object"; nil: it may be several.
function M.plain_type(schema)
  local may_be_several = schema["x-kubernetes-int-or-string"] or schema.oneOf or schema.anyOf
    or schema["x-kubernetes-preserve-unknown-fields"] or schema["x-kubernetes-embedded-resource"]
  return not may_be_several and type(schema.type) == "string" and schema.type or nil
end


--- The values that a text or a number may have, or nil.
function M.values(schema)
  return type(schema.enum) == "table" and #schema.enum > 0 and schema.enum or nil
end


return M
