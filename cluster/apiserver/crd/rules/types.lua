--- The types that rules see: what a structural schema is in CEL.
---
--- A declaration is { type =, min =, fields =, elem = }: the CEL type, the bytes that its shortest JSON has, and the
--- declarations of its parts. How large a value can be stands in the type (`max_size`): what the schema allows, or what
--- fits into a request. Rules: apiserver/pkg/cel/{common/schemas,types,limits}.go.
local cel = require "cluster.cel"
local escape = require "cluster.apiserver.crd.rules.escape"
local host = require "cluster.host"
local lists = require "cluster.apiserver.crd.rules.lists"

local M = {}

local null = host.json.null
local sized = cel.types.sized

local REQUEST_MAX = 3 * 1024 * 1024
local STRING_MAX = REQUEST_MAX - 2
local INT_OR_STRING, EMBEDDED = "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource"

-- Formats of strings that are types of their own: the type, the bytes of its shortest JSON, its most characters.
local FORMATS = {
  duration = { cel.types.duration, 3, 32 },
  date = { cel.types.timestamp, 12, 12 },
  ["date-time"] = { cel.types.timestamp, 21, 32 },
}

local declare


local function at_least_0(count)
  return math.max(count, 0)
end


-- The characters of a text can have four bytes each.
local function text_max(schema)
  return schema.maxLength and at_least_0(schema.maxLength) * 4
end


local function longest(choices)
  local most = 0
  for _, choice in ipairs(choices) do
    most = type(choice) == "string" and math.max(most, #choice) or most
  end
  return most
end


local function declare_string(schema)
  local format = FORMATS[schema.format]
  if format then
    return { type = sized(format[1], format[3]), min = format[2] }
  elseif schema.format == "byte" then
    return { type = sized(cel.types.bytes, schema.maxLength and at_least_0(schema.maxLength) or STRING_MAX), min = 2 }
  end
  local enum = schema.enum
  local most = text_max(schema) or enum and #enum > 0 and longest(enum) or STRING_MAX
  return { type = sized(cel.types.string, most), min = 2 }
end


local function declare_list(schema, cache, name)
  local elem = schema.items and declare(schema.items, cache, name .. ".@idx")
  if not elem then
    return nil
  end
  local most = schema.maxItems and at_least_0(schema.maxItems) or (REQUEST_MAX - 2) // (elem.min + 1)
  local list = sized(cel.types.list(elem.type), most)
  lists.describe(list, schema)
  return { type = list, min = 2, elem = elem }
end


local function declare_map(schema, cache, name)
  local elem = declare(schema.additionalProperties, cache, name .. ".@elem")
  if not elem then
    return nil
  end
  local most = schema.maxProperties and at_least_0(schema.maxProperties) or (REQUEST_MAX - 2) // (elem.min + 6)
  return { type = sized(cel.types.map(cel.types.string, elem.type), most), min = 2, elem = elem }
end


local function set_of(names)
  local set = {}
  for _, name in ipairs(names or {}) do
    set[name] = true
  end
  return set
end


local function declare_object(schema, cache, name)
  local fields, types, min = {}, {}, 2
  local required = set_of(schema.required)
  for key, property in pairs(schema.properties or {}) do
    local identifier = escape(key)
    local field = declare(property, cache, name .. "." .. (identifier or key))
    if field and identifier then
      local described = { type = field.type, optional = not required[key], key = key }
      fields[identifier], types[identifier] = field, described
      if identifier == "__" .. key .. "__" then
        types[key] = described -- self.namespace may be read as well
      end
    end
    local default = property.default
    if field and required[key] and (default == nil or default == null) then
      min = min + #key + field.min + 4
    end
  end
  return { type = cel.types.object(name, types), min = min, fields = fields }
end


local SCALARS = {
  boolean = { type = cel.types.bool, min = 4 },
  number = { type = cel.types.double, min = 1 },
  integer = { type = cel.types.int, min = 1 },
}


local function declare_new(schema, cache, name)
  if schema[INT_OR_STRING] then
    return { type = sized(cel.types.dyn, text_max(schema) or STRING_MAX), min = 1 }
  elseif schema.type == "array" then
    return declare_list(schema, cache, name)
  elseif schema.type == "object" then
    local is_map = type(schema.additionalProperties) == "table"
    return (is_map and declare_map or declare_object)(schema, cache, name)
  elseif schema.type == "string" then
    return declare_string(schema)
  end
  return SCALARS[schema.type]
end


local TEXT = { type = "string" }
local META = { type = "object", properties = { name = TEXT, generateName = TEXT } }


local function is_text(properties, name)
  return properties ~= nil and properties[name] ~= nil and properties[name].type == "string"
end


--- The schema of a resource with what each resource has. @return table that schema when it says so itself
function M.with_metadata(schema)
  local properties = schema.properties
  local meta = properties and properties.metadata
  if is_text(properties, "kind") and is_text(properties, "apiVersion") and meta and meta.type == "object"
    and is_text(meta.properties, "name") and is_text(meta.properties, "generateName") then
    return schema
  end
  local all = {}
  for key, property in pairs(properties or {}) do
    all[key] = property
  end
  all.kind, all.apiVersion, all.metadata = TEXT, TEXT, META
  return setmetatable({ properties = all }, { __index = schema })
end


local function or_null(declaration)
  local copy = {}
  for key, value in pairs(declaration) do
    copy[key] = value
  end
  copy.type = sized(declaration.type, declaration.type.max_size)
  copy.type.accepts_null = true
  return copy
end


-- `cache` holds the declaration of each schema: false when it has none.
function declare(schema, cache, name, is_root)
  local known = cache[schema]
  if known == nil then
    known = declare_new((is_root or schema[EMBEDDED]) and M.with_metadata(schema) or schema, cache, name)
    known = known and schema.nullable and or_null(known) or known or false
    cache[schema] = known
  end
  return known or nil
end


--- The declaration of a schema, nil when rules cannot see its values.
--- @param schema table structural  @param is_root boolean whether it is that of a whole resource
--- @return table|nil
function M.declare(schema, is_root)
  return declare(schema, {}, "selfType1", is_root)
end


return M
