--- The document of the second version of OpenAPI in protobuf, which older kubectls request.
---
--- The messages are those of gnostic-models/openapiv2/OpenAPIv2.proto.
local document = require "cluster.apiserver.openapi.document"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local openapi_versions = require "cluster.apiserver.openapi.openapi_versions"

local M = {}

local SMALL = {}
for value = 0, 127 do
  SMALL[value] = string.char(value)
end


local function varint(value)
  if SMALL[value] then
    return SMALL[value]
  end
  local bytes = {}
  while value < 0 or value > 127 do
    bytes[#bytes + 1] = string.char(value & 0x7f | 0x80)
    value = value >> 7
  end
  bytes[#bytes + 1] = string.char(value)
  return table.concat(bytes)
end


-- A field of bytes: text or another message.
local function field(number, bytes)
  return varint(number << 3 | 2) .. varint(#bytes) .. bytes
end


local write = {}

function write.text(number, value)
  return field(number, value)
end

function write.texts(number, values)
  local list = {}
  for i, value in ipairs(values) do
    list[i] = field(number, value)
  end
  return table.concat(list)
end

function write.flag(number, value)
  return value and varint(number << 3) .. "\1" or ""
end

function write.integer(number, value)
  return varint(number << 3) .. varint(math.tointeger(value))
end

function write.double(number, value)
  return varint(number << 3 | 1) .. string.pack("<d", value)
end

-- Any value is told as YAML, which JSON is too.
function write.any(number, value)
  return field(number, field(2, host.json.encode(value) .. "\n"))
end

function write.anys(number, values)
  local list = {}
  for i, value in ipairs(values) do
    list[i] = write.any(number, value)
  end
  return table.concat(list)
end


-- Messages are written from tables with the JSON names: `shape` has name → { number, how }.
local function message(shape, value, extensions)
  local list = {}
  for _, key in ipairs(gofmt.sorted_keys(value)) do
    local rule = shape[key]
    if rule then
      list[#list + 1] = rule[2](rule[1], value[key])
    elseif extensions and key:sub(1, 2) == "x-" then
      list[#list + 1] = field(extensions, field(1, key) .. field(2, field(2, host.json.encode(value[key]) .. "\n")))
    end
  end
  return table.concat(list)
end


local SCHEMA


local function schema_bytes(schema)
  return message(SCHEMA, schema, 31)
end


local function named(name, bytes)
  return field(1, name) .. field(2, bytes)
end


local function write_schema(number, schema)
  return field(number, schema_bytes(schema))
end


local function write_properties(number, properties)
  local list = {}
  for i, name in ipairs(gofmt.sorted_keys(properties)) do
    list[i] = field(1, named(name, schema_bytes(properties[name])))
  end
  return field(number, table.concat(list))
end


local function write_type(number, name)
  return field(number, field(1, name))
end


local function write_items(number, schema)
  return field(number, field(1, schema_bytes(schema)))
end


local function write_additional(number, value)
  if type(value) == "boolean" then
    return field(number, "\16" .. (value and "\1" or "\0"))
  end
  return field(number, field(1, schema_bytes(value)))
end


SCHEMA = {
  ["$ref"] = { 1, write.text }, format = { 2, write.text }, title = { 3, write.text },
  description = { 4, write.text }, multipleOf = { 6, write.double }, maximum = { 7, write.double },
  exclusiveMaximum = { 8, write.flag }, minimum = { 9, write.double }, exclusiveMinimum = { 10, write.flag },
  maxLength = { 11, write.integer }, minLength = { 12, write.integer }, pattern = { 13, write.text },
  maxItems = { 14, write.integer }, minItems = { 15, write.integer }, uniqueItems = { 16, write.flag },
  maxProperties = { 17, write.integer }, minProperties = { 18, write.integer }, required = { 19, write.texts },
  enum = { 20, write.anys }, additionalProperties = { 21, write_additional }, type = { 22, write_type },
  items = { 23, write_items }, properties = { 25, write_properties }, example = { 30, write.any },
}

local BODY = { name = { 2, write.text }, ["in"] = { 3, write.text }, required = { 4, write.flag },
  schema = { 5, write_schema } }
local IN_QUERY = { required = { 1, write.flag }, ["in"] = { 2, write.text }, name = { 4, write.text },
  type = { 6, write.text }, uniqueItems = { 20, write.flag } }
local IN_PATH = { required = { 1, write.flag }, ["in"] = { 2, write.text }, name = { 4, write.text },
  type = { 5, write.text }, uniqueItems = { 19, write.flag } }


local function parameter_bytes(parameter)
  local where = parameter["in"]
  if where == "body" then
    return field(1, message(BODY, parameter))
  elseif where == "query" then
    return field(2, field(3, message(IN_QUERY, parameter)))
  end
  return field(2, field(4, message(IN_PATH, parameter)))
end


local function write_parameters(number, parameters)
  local list = {}
  for i, parameter in ipairs(parameters) do
    list[i] = field(number, field(1, parameter_bytes(parameter)))
  end
  return table.concat(list)
end


local RESPONSE = {
  description = { 1, write.text },
  schema = { 2, function(number, schema)
    return field(number, write_schema(1, schema))
  end },
}


local function write_responses(number, responses)
  local list = {}
  for i, code in ipairs(gofmt.sorted_keys(responses)) do
    list[i] = field(1, named(code, field(1, message(RESPONSE, responses[code]))))
  end
  return field(number, table.concat(list))
end


local OPERATION = {
  tags = { 1, write.texts }, operationId = { 5, write.text }, produces = { 6, write.texts },
  consumes = { 7, write.texts }, parameters = { 8, write_parameters }, responses = { 9, write_responses },
  schemes = { 10, write.texts },
}


local function write_operation(number, operation)
  return field(number, message(OPERATION, operation, 13))
end


local PATH = {
  get = { 2, write_operation }, put = { 3, write_operation }, post = { 4, write_operation },
  delete = { 5, write_operation }, patch = { 8, write_operation }, parameters = { 9, write_parameters },
}


-- Writes the pieces of the document; see document.lua.
local WRITER = {
  openapi_version = openapi_versions.v2, parts = setmetatable({}, { __mode = "k" }), texts = {},
  path = function(path, item)
    return field(2, named(path, message(PATH, item, 10)))
  end,
  definition = function(name, schema)
    return field(1, named(name, schema_bytes(schema)))
  end,
}


local API_KEY = { type = { 1, write.text }, name = { 2, write.text }, ["in"] = { 3, write.text },
  description = { 4, write.text } }


local function security_bytes()
  local key = field(2, message(API_KEY, document.security.BearerToken))
  return field(1, named("BearerToken", key))
end


--- The document of the second version as bytes. The arguments are those of document.v2.
function M.document(resources, extra)
  local info = field(1, document.info.title) .. field(2, document.info.version)
  local paths, schemas = document.gather(resources, extra, WRITER)
  return table.concat {
    field(1, "2.0"), field(2, info), field(8, table.concat(paths)), field(9, table.concat(schemas)),
    field(12, field(1, named("BearerToken", ""))), field(13, security_bytes()),
  }
end


return M
