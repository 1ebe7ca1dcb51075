--- Checks that the Go types of a built-in kind can hold an object's values; the errors are those of Go's decoder.
---
--- A schema is compiled once to functions: check(value, run) returns nil, or a message. `run` has `each`, the way to
--- walk an object, and `at`, the names of the fields on the way.
--- Rules and wordings: sigs.k8s.io/json (encoding/json): the innermost struct is named, then the way there without
--- indexes and keys of maps, then the Go type.
local builtin = require "cluster.apiserver.schema.builtin"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local texts = require "cluster.apiserver.schema.texts"

local null, is_array = host.json.null, host.json.is_array
local math_type = math.type

local INT32_MAX, INT32_MIN = 0x7fffffff, -0x80000000


-- The decoder's word for a value that does not fit.
local function called(value, for_integer)
  local kind = type(value)
  if kind == "boolean" then
    return "bool"
  elseif kind == "table" then
    return is_array(value) and "array" or "object"
  elseif kind == "number" and for_integer then
    return "number " .. host.json.encode(value)
  end
  return kind
end


local function refuse(run, value, go_type, for_integer)
  return ("json: cannot unmarshal %s into Go struct field %s.%s of type %s"):format(
    called(value, for_integer), run.struct, table.concat(run.at, ".", 1, run.depth), go_type)
end


-- Go's name for the type of a schema, when the field it belongs to has no name of its own for it.
local function go_name(schema)
  local definition = schema["x-go-type"]
  if definition == "Quantity" then
    return "resource.Quantity"
  elseif definition == "IntOrString" then
    return "intstr.IntOrString"
  elseif definition == "RawExtension" then
    return "runtime.RawExtension"
  elseif definition then
    return "v1." .. definition
  elseif schema.type == "array" then
    return "[]" .. go_name(schema.items)
  elseif schema.type == "object" then
    return "map[string]" .. go_name(schema.additionalProperties)
  elseif schema.format == "byte" then
    return "[]uint8"
  elseif schema.type == "integer" then
    return schema.format or "int"
  end
  return schema.type == "boolean" and "bool" or schema.type == "number" and "float64" or schema.type
end


local function plain(wanted)
  return function(go_type)
    return function(value, run)
      if type(value) ~= wanted and value ~= null then
        return refuse(run, value, go_type)
      end
    end
  end
end


local function integer(go_type)
  local least, most = math.mininteger, math.maxinteger
  if go_type == "int32" then
    least, most = INT32_MIN, INT32_MAX
  end
  return function(value, run)
    if math_type(value) ~= "integer" and value ~= null or value ~= null and (value < least or value > most) then
      return refuse(run, value, go_type, true)
    end
  end
end


local SCALARS = { string = plain "string", boolean = plain "boolean", number = plain "number", integer = integer }


-- A string that its type reads; a value of another kind is refused as no string.
local function text_of(read)
  return function(value, run)
    if type(value) == "string" then
      return read(value)
    elseif value ~= null then
      return refuse(run, value, "string")
    end
  end
end


local function bytes(value, run)
  if type(value) == "string" then
    return texts.bytes(value)
  elseif value ~= null then
    return refuse(run, value, "[]uint8")
  end
end


local SPECIAL = {
  Time = text_of(texts.time),
  MicroTime = text_of(texts.micro_time),
  Quantity = function(value)
    if type(value) == "table" or type(value) == "boolean" then
      return texts.quantity("x")
    elseif value ~= null then
      return texts.quantity(tostring(value))
    end
  end,
  IntOrString = function(value, run)
    if type(value) == "number" then
      return integer("int32")(value, run)
    elseif type(value) ~= "string" and value ~= null then
      return refuse(run, value, "int32")
    end
  end,
}


local compile


local function list(schema, go_type)
  local item = compile(schema.items, go_type:match "^%[%](.+)$")
  return function(value, run)
    if type(value) ~= "table" or not is_array(value) then
      return value ~= null and refuse(run, value, go_type) or nil
    end
    for i = 1, #value do
      local why = item(value[i], run)
      if why then
        return why
      end
    end
  end
end


local function map(schema, go_type)
  local item = compile(schema.additionalProperties, go_type:match "^map%[[^]]*%](.+)$")
  return function(value, run)
    if type(value) ~= "table" or is_array(value) then
      return value ~= null and refuse(run, value, go_type) or nil
    end
    for _, inner in run.each(value) do
      local why = item(inner, run)
      if why then
        return why
      end
    end
  end
end


local function walk(value, run, struct, fields)
  local outer, depth = run.struct, run.depth + 1
  run.depth = depth
  for key, inner in run.each(value) do
    local field = fields[key]
    if field then
      run.struct, run.at[depth] = struct, field.label
      local why = field.check(inner, run)
      if why then
        return why
      end
    end
  end
  run.struct, run.depth = outer, depth - 1
end


local structs = setmetatable({}, { __mode = "k" })


local function struct_of(schema)
  local known = structs[schema]
  if known then
    return known
  end
  local struct, fields = schema["x-go-type"], nil
  local go_type = "v1." .. struct
  known = function(value, run)
    if not fields then
      fields = {}
      for _, field in ipairs(builtin.record_of(schema).fields) do
        local name = field.name
        local label = field.embedded and field.embedded .. "." .. name or name
        fields[name] = { check = compile(schema.properties[name], field.go_type), label = label }
      end
    end
    if type(value) ~= "table" or is_array(value) then
      return value ~= null and refuse(run, value, go_type) or nil
    end
    return walk(value, run, struct, fields)
  end
  structs[schema] = known
  return known
end


local function nothing() end


local JSON_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"

-- A schema where something else may stand as well.
local function nested_schema(value, run)
  if type(value) == "table" and not is_array(value) then
    return struct_of(builtin.definition(JSON_SCHEMA))(value, run)
  end
end


-- A schema or a list of schemas. Any other value is passed over.
function SPECIAL.JSONSchemaPropsOrArray(value, run)
  if type(value) ~= "table" or not is_array(value) then
    return nested_schema(value, run)
  end
  for _, item in ipairs(value) do
    local why = nested_schema(item, run)
    if why then
      return why
    end
  end
end


function SPECIAL.JSONSchemaPropsOrBool(value, run)
  if type(value) ~= "boolean" and value ~= null and (type(value) ~= "table" or is_array(value)) then
    return "boolean or JSON schema expected"
  end
  return nested_schema(value, run)
end


-- @param go_type string|nil Go's name for the type, when the field knows it
function compile(schema, go_type)
  local definition = schema["x-go-type"]
  if SPECIAL[definition] then
    return SPECIAL[definition]
  elseif definition and schema.properties then
    return struct_of(schema)
  elseif definition or not schema.type then
    return nothing
  end
  go_type = go_type or go_name(schema)
  if schema.type == "array" then
    return list(schema, go_type)
  elseif schema.type == "object" then
    return schema.additionalProperties and map(schema, go_type) or nothing
  elseif schema.format == "byte" then
    return bytes
  end
  return SCALARS[schema.type](go_type)
end


local function sorted_pairs(object)
  local keys, i = gofmt.sorted_keys(object), 0
  return function()
    i = i + 1
    return keys[i], object[keys[i]]
  end
end


--- Returns the error that keeps `object` from being read into the type of a built-in kind, given by `schema`, or nil.
--- If there are several errors, it is always the same one.
return function(schema, object)
  local check = struct_of(schema)
  if check(object, { at = {}, depth = 0, each = pairs }) then
    return check(object, { at = {}, depth = 0, each = sorted_pairs })
  end
end
