--- The metadata of custom kinds: that of the object itself, and that of resources embedded in it.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apiserver/schema/objectmeta/{coerce,algorithm}.go.
local builtin = require "cluster.apiserver.schema.builtin"
local decode = require "cluster.apiserver.schema.decode"
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"

local is_array, null = host.json.is_array, host.json.null

-- Fields of metadata that are removed if they are empty.
local DROPPED = { "labels", "annotations", "ownerReferences", "finalizers", "managedFields", "creationTimestamp" }


local function is_object(value)
  return type(value) == "table" and not is_array(value)
end


local function go_kind(value)
  if type(value) == "table" then
    return "array"
  end
  return type(value) == "boolean" and "bool" or type(value)
end


-- Returns the error that keeps `meta` from being read as an ObjectMeta, or nil.
local function refusal(meta)
  if meta == nil or meta == null then
    return nil
  elseif not is_object(meta) then
    return ("json: cannot unmarshal %s into Go value of type v1.ObjectMeta"):format(go_kind(meta))
  end
  return decode(builtin.of("", "v1", "ObjectMeta"), meta)
end


local function tidy(meta)
  for _, key in ipairs(DROPPED) do
    local value = meta[key]
    if value == null or type(value) == "table" and next(value) == nil then
      meta[key] = nil
    end
  end
end


local function check_embedded(object, path)
  for _, key in ipairs { "apiVersion", "kind" } do
    local value = object[key]
    if value ~= nil and type(value) ~= "string" then
      local err = field.invalid(path .. "." .. key, value, "must be a string")
      return err.path .. ": " .. field.body(err)
    end
  end
  local why = refusal(object.metadata)
  if why then
    return path .. ".metadata: " .. field.body(field.invalid("", object.metadata, why))
  elseif is_object(object.metadata) then
    tidy(object.metadata)
  end
end


-- Schema → function(value, path) for those with embedded resources below; false for others. In a schema of its own kind
-- there are no cycles.
local compiled = setmetatable({}, { __mode = "k" })
local compile


local function compile_properties(schema)
  local parts = {}
  for name, property in pairs(schema.properties or {}) do
    parts[name] = compile(property) or nil
  end
  return parts
end


local function walker(schema, parts, additional, items)
  local embedded = schema["x-kubernetes-embedded-resource"]
  return function(value, path)
    if is_array(value) then
      for i = 1, items and #value or 0 do
        local why = type(value[i]) == "table" and items(value[i], ("%s[%d]"):format(path, i - 1))
        if why then
          return why
        end
      end
      return nil
    end
    local why = embedded and check_embedded(value, path)
    if why then
      return why
    end
    for _, key in ipairs(gofmt.sorted_keys(value)) do
      local part = parts[key] or additional
      why = part and type(value[key]) == "table" and part(value[key], path == "" and key or path .. "." .. key)
      if why then
        return why
      end
    end
  end
end


function compile(schema)
  local known = compiled[schema]
  if known == nil then
    local parts = compile_properties(schema)
    local rest = schema.additionalProperties
    local additional = type(rest) == "table" and compile(rest)
    local items = schema.items and compile(schema.items)
    known = (schema["x-kubernetes-embedded-resource"] or next(parts) or additional or items)
      and walker(schema, parts, additional, items) or false
    compiled[schema] = known
  end
  return known
end


--- Returns the error that keeps the metadata of `object`, of a custom kind with `schema`, from being read, or nil.
--- Removes empty fields from the metadata of embedded resources.
return function(schema, object)
  local why = refusal(object.metadata)
  if why then
    return why
  end
  local walk = compile(schema)
  return walk and walk(object, "") or nil
end
