--- Removes the fields of an object that its schema does not have.
---
--- Rules: apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go and schema/objectmeta/coerce.go for custom
--- kinds; unknown fields of built-in kinds are those that a decoder of their Go type would ignore.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"

local is_array = host.json.is_array

local TYPE_META = { apiVersion = true, kind = true }
local PRESERVE = "x-kubernetes-preserve-unknown-fields"


local function path_of(at, depth, key)
  local parts = {}
  for i = 1, depth do
    local step = at[i]
    parts[i] = type(step) == "number" and "[" .. step .. "]" or (i > 1 and "." or "") .. step
  end
  parts[#parts + 1] = depth > 0 and "." .. key or key
  return table.concat(parts)
end


-- Where nothing is known: all keys of objects go, lists keep their items.
local function clear(value, at, depth, found)
  if is_array(value) then
    for i, item in ipairs(value) do
      at[depth + 1] = i - 1
      if type(item) == "table" then
        clear(item, at, depth + 1, found)
      end
    end
    return
  end
  for key in pairs(value) do
    found[#found + 1] = path_of(at, depth, key)
    value[key] = nil
  end
end


local function prune_items(items, value, at, depth, found)
  for i = 1, #value do
    local item = value[i]
    if type(item) == "table" then
      at[depth + 1] = i - 1
      items(item, at, depth + 1, found)
    end
  end
end


-- Tables: schema → function(value, at, depth, found), for the two ways a schema is walked.
local pruners = setmetatable({}, { __mode = "k" })
local keepers = setmetatable({}, { __mode = "k" })
local compile


local function nothing() end


local function compile_parts(schema)
  local parts = {}
  for name, property in pairs(schema.properties or {}) do
    parts[name] = compile(property)
  end
  local additional = schema.additionalProperties
  if type(additional) == "table" then
    return parts, compile(additional)
  end
  return parts, additional and clear or nil
end


-- An embedded object has apiVersion, kind and metadata beside the fields of its schema. Unknown fields of its metadata
-- are listed after all others.
local function embed(parts, embedded)
  if not embedded then
    return
  end
  local metadata = compile(builtin.of("", "v1", "ObjectMeta"))
  parts.apiVersion, parts.kind = nothing, nothing
  parts.metadata = function(value, at, depth, found)
    metadata(value, at, depth, found.embedded)
  end
end


-- Walks a value: what has a part of its own goes there, the rest goes away unless it is kept.
local function walker(schema, preserves_unknown)
  local embedded = schema["x-kubernetes-embedded-resource"]
  local walk_items, parts, additional
  local function prepare()
    parts, additional = compile_parts(schema)
    embed(parts, embedded)
    local items = schema.items
    walk_items = items and compile(items, preserves_unknown) or (preserves_unknown and nothing or clear)
  end
  return function(value, at, depth, found)
    if not parts then
      prepare()
    end
    if is_array(value) then
      return prune_items(walk_items, value, at, depth, found)
    end
    for key, inner in pairs(value) do
      local part = parts[key] or additional
      if not part and not preserves_unknown then
        if depth > 0 or not TYPE_META[key] then
          found[#found + 1] = path_of(at, depth, key)
        end
        value[key] = nil
      elseif part and type(inner) == "table" then
        at[depth + 1] = key
        part(inner, at, depth + 1, found)
      end
    end
  end
end


-- Is there nothing to look for below?
local function is_free(schema)
  return schema[PRESERVE] and not schema.properties and not schema.items and not schema.additionalProperties
    and not schema["x-kubernetes-embedded-resource"]
end


function compile(schema, preserves_unknown)
  preserves_unknown = preserves_unknown or schema[PRESERVE]
  local known = preserves_unknown and keepers or pruners
  if not known[schema] then
    known[schema] = is_free(schema) and nothing or walker(schema, preserves_unknown)
  end
  return known[schema]
end


local function append_sorted(list, more)
  table.sort(more)
  table.move(more, 1, #more, #list + 1, list)
end


-- The paths of a custom kind in upstream's order: those of metadata, of the rest, of metadata of embedded resources.
local function in_order(found, embedded)
  local list, rest = {}, {}
  for _, path in ipairs(found) do
    local part = path:find "^metadata%." and list or rest
    part[#part + 1] = path
  end
  table.sort(list)
  append_sorted(list, rest)
  append_sorted(list, embedded)
  return list
end


--- Takes out of an object what its schema does not know. The schema describes apiVersion, kind and metadata, too.
--- @return table list of the paths of what is gone, "spec.containers[0].naem", in upstream's order
return function(schema, object)
  local found, embedded = {}, {}
  found.embedded = embedded
  compile(schema)(object, {}, 0, found)
  found.embedded = nil
  if #found + #embedded < 2 then
    return found[1] and found or embedded
  elseif schema["x-go-type"] then
    table.sort(found)
    return found
  end
  return in_order(found, embedded)
end
