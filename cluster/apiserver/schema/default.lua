--- Fills in the defaults of a schema, and removes nulls that the schema does not allow. A small object may have a great
--- many places for a large default: what becomes larger than can be stored is refused while it grows.
---
--- Rules: apiextensions-apiserver/pkg/apiserver/schema/defaulting/{algorithm,prunenulls}.go.
local host = require "cluster.host"

local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"

local null, is_array, copy = host.json.null, host.json.is_array, host.json.copy

local compiled = setmetatable({}, { __mode = "k" })
local sizes = setmetatable({}, { __mode = "k" }) -- of the defaults of schemas, in bytes of JSON
local compile
local room = 0 -- bytes that the object at work may still grow by


-- A default of a schema of the caller's own; nil when there is none.
local function default_of(schema)
  local default = schema.default
  if default ~= nil then
    sizes[schema] = sizes[schema] or #host.json.encode(default)
    room = room - sizes[schema]
    if room < 0 then
      error(status.etcd_refuses(), 0)
    end
  end
  if type(default) == "table" then
    return copy(default)
  elseif default ~= null then
    return default
  end
end


local function compile_properties(schema)
  local parts, defaults = {}, {}
  for name, property in pairs(schema.properties or {}) do
    parts[name] = { schema = property, fill = compile(property) }
    if property.default ~= nil and property.default ~= null then
      defaults[#defaults + 1] = { name = name, schema = property }
    end
  end
  return parts, defaults
end


local function fill_object(object, parts, defaults, additional)
  for i = 1, #defaults do
    local property = defaults[i]
    if object[property.name] == nil then
      object[property.name] = default_of(property.schema)
    end
  end
  for key, value in pairs(object) do
    local part = parts[key] or additional
    if part then
      if value == null and not part.schema.nullable then
        value = default_of(part.schema)
        object[key] = value
      end
      if type(value) == "table" then
        part.fill(value)
      end
    end
  end
end


local function fill_items(list, items)
  for i = 1, #list do
    local value = list[i]
    if value == null and not items.schema.nullable then
      value = default_of(items.schema)
      list[i] = value == nil and null or value
    end
    if type(value) == "table" then
      items.fill(value)
    end
  end
end


function compile(schema)
  local known = compiled[schema]
  if known then
    return known
  end
  local parts, defaults, additional, items
  local function prepare()
    parts, defaults = compile_properties(schema)
    local rest = schema.additionalProperties
    additional = type(rest) == "table" and { schema = rest, fill = compile(rest) }
    items = schema.items and { schema = schema.items, fill = compile(schema.items) }
  end
  known = function(value)
    if not parts then
      prepare()
    end
    if not is_array(value) then
      return fill_object(value, parts, defaults, additional)
    elseif items then
      return fill_items(value, items)
    end
  end
  compiled[schema] = known
  return known
end


--- Fills in the defaults that a schema has for `object`, which is changed. Raises a status when they are too many.
return function(schema, object)
  room = store.SIZE_MAX
  compile(schema)(object)
end
