--- Reads objects of built-in kinds from Kubernetes' protobuf, as clients with Go types send them.
---
--- Rules: apimachinery/pkg/runtime/serializer/protobuf (the envelope), the generated.proto files of the kinds, whose
--- numbers are in facts/types/. Fields that a Go client always writes, even empty, are in the result too: the
--- kind's defaults correct them, as for JSON.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local notation = require "cluster.apiserver.schema.notation"

local M = {}

local PREFIX = "k8s\0"
local VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
local META = notation.packages.meta.name .. "."

local NO_KIND = 'no kind "%s" is registered for version "%s" in scheme "pkg/runtime/scheme.go:111"'

local plans = {}   -- full name of a definition → number → { name =, type =, repeated = } or { inline = plan }


-- An integer of seven bits a byte, and where the next thing begins.
local function read_varint(text, at)
  local value, shift = 0, 0
  repeat
    local byte = text:byte(at)
    if not byte then
      error({ "unexpected EOF" }, 0)
    elseif shift > 63 then
      error({ "proto: integer overflow" }, 0)
    end
    value = value | (byte & 0x7f) << shift
    shift, at = shift + 7, at + 1
  until byte < 0x80
  return value, at
end


local function read_bytes(text, at)
  local size, from = read_varint(text, at)
  if size < 0 or from + size - 1 > #text then
    error({ "unexpected EOF" }, 0)
  end
  return text:sub(from, from + size - 1), from + size
end


local function read_value(text, at, wire)
  if wire == VARINT then
    return read_varint(text, at)
  elseif wire == BYTES then
    return read_bytes(text, at)
  end
  local size = wire == FIXED64 and 8 or wire == FIXED32 and 4
  if not size then
    error({ "proto: illegal wireType " .. wire }, 0)
  elseif at + size - 1 > #text then
    error({ "unexpected EOF" }, 0)
  end
  return text:sub(at, at + size - 1), at + size
end


local function wrong_wire(wire)
  error({ "proto: wrong wireType = " .. wire }, 0)
end


-- Calls fn(number, wire type, value) for each field of a message.
local function each_field(text, fn)
  if type(text) ~= "string" then
    wrong_wire(VARINT)
  end
  local at = 1
  while at <= #text do
    local key, after = read_varint(text, at)
    local value, following = read_value(text, after, key & 7)
    fn(key >> 3, key & 7, value)
    at = following
  end
end


local function place(plan, path, entry)
  local first, rest = path:match("^(%d+)%.?(.*)$")
  local number = math.tointeger(tonumber(first))
  if rest == "" then
    plan[number] = entry
    return
  end
  plan[number] = plan[number] or { inline = {} }
  place(plan[number].inline, rest, entry)
end


local function plan_of(name)
  local plan = plans[name]
  if plan then
    return plan
  end
  local record = builtin.record(name)
  plan = {}
  for _, field in ipairs(record.fields) do
    if field.number then
      place(plan, field.number, field)
    end
  end
  plans[name] = plan
  return plan
end


local decode_message


-- Fields of a small message, by number. `types` has for each number of interest the Lua type its value must have.
local function small(bytes, types)
  local values = {}
  each_field(bytes, function(number, wire, value)
    if types[number] and type(value) ~= types[number] then
      wrong_wire(wire)
    end
    values[number] = value
  end)
  return values
end


local TEXT, NUMBERS, EITHER = { "string" }, { "number", "number" }, { "number", "number", "string" }
local ENVELOPE, TYPES = { "string", "string" }, { "string", "string" }

-- Years 1 to 9999, in seconds since 1970.
local FIRST_SECOND, LAST_SECOND = -62135596800, 253402300799


local function json_of(bytes)
  local raw = small(bytes, TEXT)[1]
  local value = raw and raw ~= "" and host.json.decode(raw)
  return value ~= false and value or host.json.null
end


-- The zero instant is told as null, as Go does it in JSON.
local function instant(pattern)
  return function(bytes)
    local values = small(bytes, NUMBERS)
    local seconds, nanos = values[1], values[2] or 0
    if not seconds then
      return host.json.null
    elseif seconds < FIRST_SECOND or seconds > LAST_SECOND then
      error({ "Time.UnmarshalProto: year outside of range [0,9999]" }, 0)
    end
    return os.date("!%Y-%m-%dT%H:%M:%S", seconds) .. pattern:format(nanos // 1000)
  end
end


local SPECIAL = {
  [notation.words.Quantity] = function(bytes)
    return small(bytes, TEXT)[1] or "0"
  end,
  [notation.words.IntOrString] = function(bytes)
    local values = small(bytes, EITHER)
    return values[1] == 1 and (values[3] or "") or values[2] or 0
  end,
  [notation.words.RawExtension] = json_of,
  [META .. "FieldsV1"] = json_of,
  [META .. "Time"] = instant "Z",
  [META .. "MicroTime"] = instant ".%06dZ",
}


local WIRES = { boolean = VARINT, integer = VARINT, string = BYTES, number = FIXED64 }


local function scalar(kind, value, wire)
  if wire ~= WIRES[kind.type] then
    wrong_wire(wire)
  elseif kind.type == "boolean" then
    return value ~= 0
  elseif kind.type == "number" then
    return (string.unpack("<d", value))
  elseif kind.format == "byte" then
    return host.base64.encode(value)
  end
  return value
end


local function decode_value(kind, value, wire)
  if not kind.ref and not kind.list then
    return scalar(kind, value, wire)
  elseif SPECIAL[kind.ref] then
    return SPECIAL[kind.ref](value)
  elseif kind.ref then
    return decode_message(plan_of(kind.ref), value, {})
  end
  local list = host.json.array {}
  each_field(value, function(_, inner_wire, item)
    list[#list + 1] = decode_value(kind.list, item, inner_wire)
  end)
  return list
end


local function add_entry(map, kind, bytes)
  local key, value = "", nil
  each_field(bytes, function(number, wire, found)
    if number == 1 then
      key = scalar({ type = "string" }, found, wire)
    elseif number == 2 then
      value = decode_value(kind, found, wire)
    end
  end)
  if value ~= nil then
    map[key] = value
  end
end


local function add_field(object, field, wire, value)
  local kind, name = field.type, field.name
  if kind.map then
    object[name] = object[name] or {}
    add_entry(object[name], kind.map, value)
  elseif kind.list then
    object[name] = object[name] or host.json.array {}
    table.insert(object[name], decode_value(kind.list, value, wire))
  else
    object[name] = decode_value(kind, value, wire)
  end
end


function decode_message(plan, bytes, object)
  each_field(bytes, function(number, wire, value)
    local entry = plan[number]
    if entry and entry.inline then
      decode_message(entry.inline, value, object)
    elseif entry then
      add_field(object, entry, wire, value)
    end
  end)
  return object
end


local function decode(text)
  local envelope = small(text:sub(#PREFIX + 1), ENVELOPE)
  local types = small(envelope[1] or "", TYPES)
  local version, kind = types[1] or "", types[2] or ""
  local group, short = version:match("^(.-)/?([^/]*)$")
  local name = builtin.name_of(group, short, kind)
  if not name then
    error({ NO_KIND:format(kind, version) }, 0)
  end
  local plan = plan_of(name)
  if next(plan) == nil then
    error({ ("objects of kind %s are read as JSON only"):format(kind) }, 0)
  end
  return decode_message(plan, envelope[2] or "", { apiVersion = version, kind = kind })
end


--- Reads one object.
--- @param text string the bytes of a body
--- @return table|nil object as decoded JSON would be, or nil and why
function M.decode(text)
  if text == "" then
    return nil, "empty data"
  elseif text:sub(1, #PREFIX) ~= PREFIX then
    return nil, "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
  end
  local ok, object = pcall(decode, text)
  if ok then
    return object
  elseif type(object) == "table" then
    return nil, object[1]
  end
  error(object, 0)
end


return M
