--- Objects of built-in kinds that nobody would write, made at random from what is known of their types: as JSON values,
--- and as Kubernetes' protobuf. The same seed makes the same objects.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local notation = require "cluster.apiserver.schema.notation"

local M = {}
M.__index = M

local META = notation.packages.meta.name .. "."
local CRD = notation.packages.apiextensions.name .. "."
local null = host.json.null
local DEPTH_MAX = 7

local TEXTS = {
  "", "a", "b", "A", "a.b", "x/y", "-", ".", "*", "\0", "\xc3\xa9", "10%", "-1", "0", "10.0.0.1", "::1", "1.2.3.4/33",
  "TCP", "None", "Always", "true", "default", "a=b", "$(A)", "[", "(", "^a", "2026-01-01T00:00:00Z", ("x"):rep(64),
  ("y"):rep(254), "example.com/a", "http://a.b/c", "a_b", "k8s.io", "../..", "/", "ClusterIP", "system:a",
}
local INTEGERS = { 0, 1, -1, 2, 80, 65535, 65536, 2147483647, -2147483648 }
local LONGS = { 4294967296, math.maxinteger, math.mininteger }
local NUMBERS = { 0.0, 1.5, -1e300, 1e21 }
local TIMES = { "2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z" }
local MICRO_TIMES = { "2026-01-01T00:00:00.000001Z" }
local QUANTITIES = { "1", "100m", "0", "-1", "1Gi", "1e3", "123456789012345678901234567890" }
local ANYTHING = { null, false, true, 5, -1.5, "a", "" }


--- Objects of a kind are the same whatever other kinds there are.
--- @param res table the resource's description  @param seed integer others for another one
function M.new(res, seed)
  local state = seed
  for at = 1, #res.id do
    state = state * 31 + res.id:byte(at) & 0xffffffff
  end
  return setmetatable({ state = state }, M)
end


--- A number from 1 to `most`.
function M:upto(most)
  self.state = (self.state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (self.state >> 33) % most + 1
end


function M:pick(list)
  return list[self:upto(#list)]
end


local function one_in(self, count)
  return self:upto(count) == 1
end


local make_object


-- A JSON value of any shape.
function M:anything()
  if one_in(self, 4) then
    return { a = self:pick(ANYTHING), b = host.json.array { self:pick(ANYTHING) } }
  elseif one_in(self, 6) then
    return host.json.array { self:pick(ANYTHING), {} }
  end
  return self:pick(ANYTHING)
end


local SPECIAL = {
  [notation.words.Quantity] = function(self) return self:pick(QUANTITIES) end,
  [notation.words.IntOrString] = function(self)
    return one_in(self, 2) and self:pick(INTEGERS) or self:pick(TEXTS)
  end,
  [notation.words.RawExtension] = function(self) return { a = self:pick(ANYTHING) } end,
  [META .. "Time"] = function(self) return self:pick(TIMES) end,
  [META .. "MicroTime"] = function(self) return self:pick(MICRO_TIMES) end,
  [META .. "FieldsV1"] = function(self) return { ["f:" .. self:pick(TEXTS)] = {} } end,
}

local SCALARS = {
  string = function(self, kind)
    return kind.format == "byte" and "YQ==" or self:pick(TEXTS)
  end,
  integer = function(self, kind)
    return kind.format ~= "int32" and one_in(self, 5) and self:pick(LONGS) or self:pick(INTEGERS)
  end,
  number = function(self) return self:pick(NUMBERS) end,
  boolean = function(self) return one_in(self, 2) end,
}


local function make_value(self, kind, enum, depth)
  if kind.list then
    local list = host.json.array {}
    for i = 1, self:upto(3) - 1 do
      list[i] = make_value(self, kind.list, enum, depth + 1)
    end
    return list
  elseif kind.map then
    local map = {}
    for _ = 1, self:upto(3) - 1 do
      map[self:pick(TEXTS)] = make_value(self, kind.map, enum, depth + 1)
    end
    return map
  elseif SPECIAL[kind.ref] then
    return SPECIAL[kind.ref](self)
  elseif kind.ref and kind.ref:find(CRD .. "JSONSchemaPropsOr", 1, true) then
    return make_object(self, CRD .. "JSONSchemaProps", depth + 1)
  elseif kind.ref then
    return make_object(self, kind.ref, depth + 1)
  elseif enum and not one_in(self, 4) then
    return self:pick(enum)
  end
  return SCALARS[kind.type](self, kind)
end


function make_object(self, name, depth)
  local record, object = builtin.record(name), {}
  if record.plain == "any" then
    return self:anything()
  end
  for _, field in ipairs(record.fields) do
    local wanted = field.required and not one_in(self, 12) or one_in(self, depth < 3 and 2 or 4)
    if wanted and depth < DEPTH_MAX then
      object[field.name] = make_value(self, field.type, field.enum, depth)
    end
  end
  return object
end


--- An object of the definition of that full name, whose metadata has that name.
function M:object(name, own_name)
  local object = make_object(self, name, 1)
  object.metadata = type(object.metadata) == "table" and object.metadata or {}
  if not one_in(self, 10) then
    object.metadata.name = own_name
    object.metadata.namespace, object.metadata.resourceVersion, object.metadata.uid = nil, nil, nil
    object.metadata.managedFields, object.metadata.deletionTimestamp = nil, nil
  end
  object.apiVersion, object.kind = nil, nil
  return object
end


-- All tables within an object, itself among them.
local function tables_of(value, list)
  list[#list + 1] = value
  local keys = {}
  for key, inner in pairs(value) do
    keys[#keys + 1] = type(inner) == "table" and key or nil
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    tables_of(value[key], list)
  end
  return list
end


--- Puts something into an object that does not belong there.
function M:spoil(object)
  local inner = self:pick(tables_of(object, {}))
  local keys = {}
  for key in pairs(inner) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  inner[keys[1] and self:pick(keys) or (host.json.is_array(inner) and 1 or "x")] = self:anything()
  return object
end


local function varint(value)
  local bytes = {}
  repeat
    local low, rest = value & 0x7f, value >> 7
    bytes[#bytes + 1] = string.char(rest ~= 0 and low | 0x80 or low)
    value = rest
  until value == 0
  return table.concat(bytes)
end


local function tagged(number, bytes)
  return varint(number << 3 | 2) .. varint(#bytes) .. bytes
end


local encode


-- A value as a field of a message: with its number and wire type.
local function encode_field(number, kind, value)
  if kind.list then
    local list = {}
    for i, item in ipairs(value) do
      list[i] = encode_field(number, kind.list, item)
    end
    return table.concat(list)
  elseif kind.map then
    local list = {}
    for key, item in pairs(value) do
      list[#list + 1] = tagged(number, tagged(1, key) .. encode_field(2, kind.map, item))
    end
    table.sort(list)
    return table.concat(list)
  elseif kind.ref == notation.words.Quantity then
    return tagged(number, tagged(1, value))
  elseif kind.ref == notation.words.IntOrString then
    local text = type(value) == "string"
    return tagged(number, "\8" .. (text and "\1" or "\0") .. (text and tagged(3, value) or "\16" .. varint(value)))
  elseif kind.ref == META .. "Time" or kind.ref == META .. "MicroTime" then
    return tagged(number, "\8" .. varint(1767225600) .. "\16" .. varint(1000))
  elseif kind.ref and (SPECIAL[kind.ref] or builtin.record(kind.ref).plain == "any") then
    return tagged(number, tagged(1, host.json.encode(value)))
  elseif kind.ref then
    return tagged(number, encode(builtin.record(kind.ref), value))
  elseif kind.type == "string" then
    return tagged(number, kind.format == "byte" and host.base64.decode(value) or value)
  elseif kind.type == "number" then
    return varint(number << 3 | 1) .. string.pack("<d", value)
  end
  return varint(number << 3) .. varint(value == true and 1 or value or 0)
end


function encode(record, object)
  local parts, inline = {}, {}
  for _, field in ipairs(record.fields) do
    local value = object[field.name]
    local first, second = (field.number or ""):match "^(%d+)%.?(%d*)$"
    if first and value ~= nil then
      local number = math.tointeger(tonumber(second ~= "" and second or first))
      local bytes = encode_field(number, field.type, value)
      if second == "" then
        parts[#parts + 1] = bytes
      else
        inline[first] = (inline[first] or "") .. bytes
      end
    end
  end
  for first, bytes in pairs(inline) do
    parts[#parts + 1] = tagged(math.tointeger(tonumber(first)), bytes)
  end
  table.sort(parts)
  return table.concat(parts)
end


--- An unspoiled object as a body in protobuf.
function M.protobuf(name, version, kind, object)
  return "k8s\0" .. tagged(1, tagged(1, version) .. tagged(2, kind))
    .. tagged(2, encode(builtin.record(name), object))
end


--- Returns the text with a few bytes changed, or cut off at its end.
function M:damage(text)
  if one_in(self, 3) or text == "" then
    return text:sub(1, self:upto(#text + 1) - 1)
  end
  for _ = 1, self:upto(3) do
    local at = self:upto(#text)
    text = text:sub(1, at - 1) .. string.char(self:upto(256) - 1) .. text:sub(at + 1)
  end
  return text
end


return M
