--- Schemas of the built-in kinds, made from kinds/types/ when they are first read.
---
--- A schema is an OpenAPI v3 schema as a table, with the table of the definition in place of each `$ref`; cycles are
--- possible. Each table of a definition is filled when a key of it is read, or `pairs` visits it; `next` and C
--- functions do not fill it, so read a key first. Besides OpenAPI's keywords a definition has `x-go-type`, the name of
--- the Go type ("ObjectMeta", "Quantity", "MicroTime"), because the server's messages show it. A definition without
--- known fields has `x-kubernetes-preserve-unknown-fields`; one manager owns such a value as a whole ("atomic").
local notation = require "cluster.apiserver.schema.notation"

local M = {}

local BY_PACKAGE, BY_GROUP = {}, {}
for alias, package in pairs(notation.packages) do
  package.alias = alias
  BY_PACKAGE[package.name] = package
  package.version = package.version or "v1"
  if alias ~= "meta" then
    BY_GROUP[package.group .. "/" .. package.version] = package
  end
end

local STRING_OR_NUMBER = { { type = "string" }, { type = "number" } }
local INTEGER_OR_STRING = { { type = "integer" }, { type = "string" } }

-- Definitions that the notation has words for.
local WORDS = {
  [notation.words.Quantity] = { ["x-go-type"] = "Quantity", oneOf = STRING_OR_NUMBER },
  [notation.words.IntOrString] = {
    ["x-go-type"] = "IntOrString", ["x-kubernetes-int-or-string"] = true,
    format = "int-or-string", oneOf = INTEGER_OR_STRING,
  },
  [notation.words.RawExtension] = {
    ["x-go-type"] = "RawExtension", type = "object", ["x-kubernetes-preserve-unknown-fields"] = true,
    ["x-kubernetes-map-type"] = "atomic",
  },
}

local ZERO = { string = "", integer = 0, boolean = false, number = 0 }

local records = {}   -- full name -> what notation.read returned
local schemas = {}   -- full name, or full name and siblings -> schema
local pending = {}   -- schema that is still empty -> what fills it
local plain = {}     -- schemas of scalars, shared
local records_of = setmetatable({}, { __mode = "k" })   -- schema of a definition, once it is filled -> record


local function fill(schema)
  local build = pending[schema]
  pending[schema] = nil
  setmetatable(schema, nil)
  build(schema)
end


local LAZY = {
  __index = function(schema, key)
    fill(schema)
    return schema[key]
  end,
  __pairs = function(schema)
    fill(schema)
    return next, schema, nil
  end,
}


local function lazy(build)
  local schema = setmetatable({}, LAZY)
  pending[schema] = build
  return schema
end


local function list_record(short, package)
  return notation.read(("@kind\nitems! []%s\nmetadata meta.ListMeta"):format(short), package)
end


--- The facts of a definition: what notation.read returned, with `name` (short) and `package`, or nil. Lists of kinds
--- ("…PodList") are made up, since they all look alike. Not for Quantity, IntOrString and RawExtension.
function M.record(name)
  if records[name] then
    return records[name]
  end
  local package_name, short = name:match "^(.+)%.([^.]+)$"
  local package = BY_PACKAGE[package_name]
  if not package then
    return nil
  end
  local facts = require("cluster.kinds.types." .. package.alias)
  local record
  if facts[short] then
    record = notation.read(facts[short], package)
  elseif short:sub(-4) == "List" and facts[short:sub(1, -5)] then
    record = list_record(short:sub(1, -5), package)
  else
    return nil
  end
  record.name, record.package = short, package
  records[name] = record
  return record
end


--- The full name of the definition of a built-in kind, "io.k8s.api.apps.v1.Deployment", or nil.
function M.name_of(group, version, kind)
  local package = BY_GROUP[group .. "/" .. version]
  if not package then
    return nil
  end
  local name = package.name .. "." .. kind
  if M.record(name) then
    return name
  end
  local meta = notation.packages.meta.name .. "." .. kind
  return M.record(meta) and meta or nil
end


--- Returns true if a value of this type that is no pointer has {} as its default.
function M.is_struct(ref)
  if WORDS[ref] then
    return false
  end
  local record = M.record(ref)
  return not record.plain or record.plain == "object"
end


--- The default that the API publishes for `field` (of a record), or nil.
function M.field_default(field)
  if field.default ~= nil then
    return field.default
  elseif field.pointer then
    return nil
  elseif field.type.ref then
    return M.is_struct(field.type.ref) and {} or nil
  end
  if field.written and field.type.format ~= "byte" then
    return ZERO[field.type.type]
  end
  return nil
end


--- The default of an item of a list or map, or nil. `kind`: a type of a record.
function M.item_default(kind)
  if kind.ref then
    return M.is_struct(kind.ref) and {} or nil
  elseif kind.format == "byte" then
    return nil
  end
  return ZERO[kind.type]
end


-- One table for each combination of type, format and default.
local function scalar(kind, default)
  local key = ("%s %s %s"):format(kind.type, kind.format, default)
  local schema = plain[key]
  if not schema then
    schema = { type = kind.type, format = kind.format, default = default }
    plain[key] = schema
  end
  return schema
end


-- The schema of definition `name` with a default and what the field that refers to it says otherwise: its strategy of
-- patches, its type of map.
local function referred(name, default, patch, map_type)
  if default == nil and not patch and not map_type then
    return M.definition(name)
  end
  local key = ("%s %s %s %s"):format(name, default ~= nil, patch, map_type)
  if not schemas[key] then
    schemas[key] = lazy(function(schema)
      local definition = M.definition(name)
      for word, value in pairs(definition) do
        schema[word] = value
      end
      records_of[schema] = records_of[definition]
      schema.default = default
      schema["x-kubernetes-patch-strategy"] = patch
      schema["x-kubernetes-map-type"] = map_type or schema["x-kubernetes-map-type"]
    end)
  end
  return schemas[key]
end


local item_schema


-- The schema of a value of type `kind` without what its field adds.
local function type_schema(kind, default, enum)
  if kind.ref then
    return referred(kind.ref, default)
  elseif kind.list then
    return { type = "array", items = item_schema(kind.list, enum) }
  elseif kind.map then
    return { type = "object", additionalProperties = item_schema(kind.map, enum) }
  elseif enum then
    return { type = kind.type, format = kind.format, default = default, enum = enum }
  end
  return scalar(kind, default)
end


function item_schema(kind, enum)
  return type_schema(kind, M.item_default(kind), enum)
end


local function field_schema(field)
  local kind = field.type
  if kind.ref then
    return referred(kind.ref, M.field_default(field), field.patch, field.map_type)
  end
  local schema = type_schema(kind, M.field_default(field), field.enum)
  if kind.list or kind.map then
    schema["x-kubernetes-list-type"] = field.list_type
    schema["x-kubernetes-list-map-keys"] = field.list_keys
    schema["x-kubernetes-map-type"] = field.map_type
    schema["x-kubernetes-patch-strategy"] = field.patch
    schema["x-kubernetes-patch-merge-key"] = field.merge_key
  end
  return schema
end


-- A definition without fields.
local function build_plain(schema, record)
  if record.plain == "date-time" then
    schema.type, schema.format = "string", "date-time"
    return
  end
  schema.type = record.plain == "object" and "object" or nil
  schema["x-kubernetes-preserve-unknown-fields"] = true
  schema["x-kubernetes-map-type"] = "atomic"
end


local function build(schema, record)
  records_of[schema] = record
  schema["x-go-type"] = record.name
  schema["x-kubernetes-map-type"] = record.map_type
  if record.plain then
    return build_plain(schema, record)
  end
  local properties, required = {}, {}
  for _, field in ipairs(record.fields) do
    properties[field.name] = field_schema(field)
    required[#required + 1] = field.required and field.name or nil
  end
  schema.type = "object"
  schema.properties = properties
  schema.required = required[1] and required or nil
  if record.kind == "kind" then
    schema["x-kubernetes-group-version-kind"] = {
      { group = record.package.group, version = record.package.version, kind = record.name },
    }
  end
end


--- The schema of a definition by its full name ("io.k8s.api.core.v1.PodSpec"), always the same table, or nil.
function M.definition(name)
  local schema = WORDS[name] or schemas[name]
  if not schema then
    local record = M.record(name)
    if not record then
      return nil
    end
    schema = lazy(function(empty)
      build(empty, record)
    end)
    schemas[name] = schema
  end
  return schema
end


--- The facts of the definition that `schema` is the schema of, as M.record has them, or nil.
function M.record_of(schema)
  return schema["x-go-type"] and records_of[schema]
end


--- The schema of a built-in kind (also of a List, and of kinds of meta/v1 such as Status in each group version),
--- or nil when there is none.
function M.of(group, version, kind)
  local name = M.name_of(group, version, kind)
  return name and M.definition(name)
end


return M
