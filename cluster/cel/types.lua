--- The types of the Common Expression Language, and how cel-go names them.
---
--- A type is { kind, name, params, fields, nullable }: `name` is what type(x) shows, `params` the types of elements, of
--- keys and values or of an abstract type, `fields` those of an object. A type is a value, too: int, type(1) == int.
--- A type from a schema may carry `max_size` (maxLength, maxItems, maxProperties, in characters or elements) and
--- `min_size`, for the estimate of costs. Rules: cel-go common/types/types.go, checker/format.go.
local M = {}

local Type = { tag = "type" }
Type.__index = Type
M.Type = Type


local NONE = {}


-- `parts` is how many types it is made of, itself included.
local function new(kind, name, params)
  local parts = 1
  for _, param in ipairs(params or NONE) do
    parts = parts + param.parts
  end
  return setmetatable({ kind = kind, name = name, params = params or NONE, parts = parts }, Type)
end


M.bool = new("bool", "bool")
M.bytes = new("bytes", "bytes")
M.double = new("double", "double")
M.int = new("int", "int")
M.uint = new("uint", "uint")
M.string = new("string", "string")
M.null = new("null", "null_type")
M.dyn = new("dyn", "dyn")
M.error = new("error", "*error*")
M.timestamp = new("timestamp", "google.protobuf.Timestamp")
M.duration = new("duration", "google.protobuf.Duration")
M.type = new("type", "type")


--- @param of table the type of the elements
function M.list(of)
  return new("list", "list", { of })
end


--- @param key table the type of the keys
--- @param value table the type of the values
function M.map(key, value)
  return new("map", "map", { key, value })
end


--- An object with fields.
--- @param name string unique in an environment
--- @param fields table|function name → { type =, optional =, key = }, or a function that returns this for a name; `key`
--- is
---   the name in JSON, when it is another
function M.object(name, fields)
  local type = new("object", name)
  type.fields = fields or {}
  type.is_abstract = not fields -- only its functions know it, but null is one of its values
  return type
end


--- A type that only its functions know: an IP address.
--- @param name string
--- @param ... table its parameters
function M.opaque(name, ...)
  return new("opaque", name, { ... })
end


function M.optional(of)
  return new("opaque", "optional_type", { of })
end


--- The type of a type: that of `int` is type(int).
function M.type_of(of)
  return new("type", "type", { of })
end


--- A type that is found out: "A" in the declaration of a function.
function M.param(name)
  return new("param", name)
end


--- The same primitive, or null: google.protobuf.Int64Value.
function M.wrapper(of)
  local type = new(of.kind, of.name)
  type.nullable = true
  return type
end


--- A copy of a type with size hints for the estimate of costs.
--- @param type table
--- @param max_size integer|nil
--- @param min_size integer|nil
function M.sized(type, max_size, min_size)
  local copy = {}
  for name, value in pairs(type) do
    copy[name] = value
  end
  copy.max_size, copy.min_size = max_size, min_size
  return setmetatable(copy, Type)
end


--- The same type with other parameters. @param type table @param params table
function M.with_params(type, params)
  local copy = new(type.kind, type.name, params)
  copy.max_size, copy.min_size = type.max_size, type.min_size
  return copy
end


--- The type of an object's field, or nil. @return table|nil { type =, optional = }
function M.field(type, name)
  local fields = type.fields
  if _G.type(fields) == "function" then
    return fields(name)
  end
  return fields[name]
end


function M.is_optional(type)
  return type.kind == "opaque" and type.name == "optional_type"
end


function M.is_dyn(type)
  return type.kind == "dyn"
end


--- Returns true if nothing about the type is open until run time.
function M.is_concrete(type)
  if type.kind == "dyn" or type.kind == "param" or type.kind == "error" or type.nullable
    or type.accepts_null then
    return false
  end
  for _, param in ipairs(type.params) do
    if not M.is_concrete(param) then
      return false
    end
  end
  return true
end


local SHORT = { timestamp = "timestamp", duration = "duration", null = "null", error = "!error!" }


local function format_params(name, params)
  local texts = {}
  for i, param in ipairs(params) do
    texts[i] = M.format(param)
  end
  return ("%s(%s)"):format(name, table.concat(texts, ", "))
end


--- As error messages name it: "list(int)".
function M.format(type)
  if SHORT[type.kind] then
    return SHORT[type.kind]
  elseif type.nullable then
    return ("wrapper(%s)"):format(type.name)
  elseif #type.params == 0 then
    return type.name
  end
  return format_params(type.name, type.params)
end


--- A call as error messages show it: "string.(int, int)", or "(int)" without a receiver.
function M.format_call(args, member)
  local texts = {}
  for i = member and 2 or 1, #args do
    texts[#texts + 1] = M.format(args[i])
  end
  return (member and M.format(args[1]) .. "." or "") .. "(" .. table.concat(texts, ", ") .. ")"
end


--- Returns true if they are the same, parameters included.
function M.exact(a, b)
  if a == b then
    return true
  elseif a.kind ~= b.kind or a.name ~= b.name or #a.params ~= #b.params or a.nullable ~= b.nullable then
    return false
  end
  for i, param in ipairs(a.params) do
    if not M.exact(param, b.params[i]) then
      return false
    end
  end
  return true
end


return M
