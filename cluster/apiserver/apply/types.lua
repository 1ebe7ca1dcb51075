--- Schemas as field management sees them: which maps and lists are merged, and by what.
---
--- A type has up to three sides, for the three forms that a value can have:
---   scalar = "string" | "numeric" | "boolean" | "untyped"
---   list   = { atomic = bool, element = type, keys = { name, … } }; without keys it is a set
---   map    = { atomic = bool, fields = { name = type }, labels = { name = "f:name" }, element = type | nil }
---            `element` is the type of members that are not declared fields
--- Rules: kube-openapi/pkg/schemaconv openapi.go and smd.go.
local element = require "cluster.apiserver.apply.element"
local object_meta = require "cluster.apiserver.apply.object_meta"

local M = {}

local SCALARS = { integer = "numeric", number = "numeric", boolean = "boolean" }

--- Any value, as one leaf.
M.ATOMIC = { scalar = "untyped", list = { atomic = true }, map = { atomic = true, fields = {}, labels = {} } }
M.ATOMIC.list.element = M.ATOMIC
M.ATOMIC.map.element = M.ATOMIC

--- The type of a value without a schema: maps are merged, lists are leaves.
M.DEDUCED = { scalar = "untyped", list = M.ATOMIC.list, map = { fields = {}, labels = {}, deduced = true } }
M.DEDUCED.map.element = M.DEDUCED

-- Types by schema, apart for schemas below x-kubernetes-preserve-unknown-fields.
local strict = setmetatable({}, { __mode = "k" })
local preserving = setmetatable({}, { __mode = "k" })

local compile


-- "map" with its keys, "set", or "atomic": how items of a list are told apart.
local function list_kind(schema)
  local kind = schema["x-kubernetes-list-type"]
  if kind then
    return kind, schema["x-kubernetes-list-map-keys"]
  end
  local strategy = schema["x-kubernetes-patch-strategy"]
  if strategy == "merge" or strategy == "merge,retainKeys" then
    local key = schema["x-kubernetes-patch-merge-key"]
    return key and "map" or "set", key and { key }
  end
  return "atomic"
end


local function compile_list(schema, preserve)
  local kind, keys = list_kind(schema)
  local items = schema.items and compile(schema.items, preserve) or M.ATOMIC
  if kind == "atomic" then
    return { atomic = true, element = items }
  end
  return element.list(items, keys, schema.items)
end


local function element_type(schema, preserve)
  local additional = schema.additionalProperties
  if additional == nil then
    local free = preserve or not schema.properties or not next(schema.properties)
    return free and M.DEDUCED or nil
  elseif type(additional) == "table" then
    return compile(additional, preserve)
  end
  return additional and M.DEDUCED or nil
end


local function compile_map(schema, preserve)
  local map = { fields = {}, labels = {}, element = element_type(schema, preserve) }
  map.atomic = schema["x-kubernetes-map-type"] == "atomic"
  for name, property in pairs(schema.properties or {}) do
    map.fields[name] = compile(property, preserve)
    map.labels[name] = "f:" .. name
  end
  if schema["x-kubernetes-embedded-resource"] then
    for name, property in pairs(object_meta.embedded) do
      map.fields[name] = compile(property)
      map.labels[name] = "f:" .. name
    end
  end
  map.deduced = map.element == M.DEDUCED and not next(map.fields)
  return map
end


-- The schema that a lone allOf stands for: how a $ref with a default or a map type beside it is written.
local function compile_reference(schema)
  local target = compile(schema.allOf[1])
  if schema["x-kubernetes-map-type"] ~= "atomic" or not target.map then
    return target
  end
  local map = { atomic = true, fields = target.map.fields, labels = target.map.labels, element = target.map.element }
  return { scalar = target.scalar, list = target.list, map = map }
end


--- The type that `schema` describes; compiled once. `preserve`: unknown fields are kept below it.
function compile(schema, preserve)
  if schema == true or schema == false then
    return M.DEDUCED
  end
  preserve = preserve or schema["x-kubernetes-preserve-unknown-fields"] == true
  local known = preserve and preserving or strict
  local found = known[schema]
  if found then
    return found
  end
  local kind = schema.type
  if not kind and schema.allOf and #schema.allOf == 1 and not schema.properties then
    return compile_reference(schema)
  end
  local result = {}
  known[schema] = result
  if kind == nil or kind == "object" then
    result.map = compile_map(schema, preserve)
  end
  if kind == nil or kind == "array" then
    result.list = compile_list(schema, preserve)
  end
  if kind == nil then
    result.scalar = "untyped"
  elseif kind == "string" then
    result.scalar = (not schema.format or schema.format == "byte") and "string" or "untyped"
  else
    result.scalar = SCALARS[kind]
  end
  return result
end


M.compile = compile

-- Types of whole objects by their schema.
local roots = setmetatable({}, { __mode = "k" })


--- The type of the objects of `schema`, with the metadata that all objects have. nil schema: nothing is described.
function M.of(schema)
  if not schema then
    return M.DEDUCED
  end
  local root = roots[schema]
  if not root then
    local compiled = compile(schema)
    root = { map = { fields = {}, labels = {}, element = compiled.map.element } }
    for name, field in pairs(compiled.map.fields) do
      root.map.fields[name], root.map.labels[name] = field, "f:" .. name
    end
    for name, property in pairs(object_meta.embedded) do
      root.map.fields[name], root.map.labels[name] = compile(property), "f:" .. name
    end
    roots[schema] = root
  end
  return root
end


return M
