--- Reads objects of built-in kinds from Kubernetes' protobuf, as clients with Go types send them.
---
--- Rules: apimachinery/pkg/runtime/serializer/protobuf (the envelope), the generated.proto files of the kinds, whose
--- numbers are in kinds/types/. Fields that a Go client always writes, even empty, are in the result too: the
--- kind's defaults correct them, as for JSON.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"
local notation = require "cluster.apiserver.schema.notation"
local syntax = require "cluster.apiserver.syntax"

local M = {}

local PREFIX = "k8s\0"
local VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
local META = notation.packages.meta.name .. "."
local CRD = notation.packages.apiextensions.name .. "."

-- Messages within messages. The stack of Lua has room for twice as many.
local DEPTH_MAX = 4000

local NO_KIND = 'no kind "%s" is registered for version "%s" in scheme "pkg/runtime/scheme.go:111"'

local plans = {}   -- full name of a definition → number → { name =, type =, repeated = } or { inline = plan }


-- An integer of seven bits a byte, and where the next thing begins. It must end before `stop`.
local function read_varint(text, at, stop)
  local value, shift = 0, 0
  repeat
    if at >= stop then
      error({ "unexpected EOF" }, 0)
    elseif shift > 63 then
      error({ "proto: integer overflow" }, 0)
    end
    local byte = text:byte(at)
    value = value | (byte & 0x7f) << shift
    shift, at = shift + 7, at + 1
  until byte < 0x80
  return value, at
end


local SIZES = { [FIXED64] = 8, [FIXED32] = 4 }


-- Where the bytes of a value that is no varint begin, and where the next thing does.
local function read_range(text, at, stop, wire)
  local size, from = SIZES[wire], at
  if wire == BYTES then
    size, from = read_varint(text, at, stop)
  elseif not size then
    error({ "proto: illegal wireType " .. wire }, 0)
  end
  if size < 0 or size > stop - from then
    error({ "unexpected EOF" }, 0)
  end
  return from, from + size
end


local function wrong_wire(wire)
  error({ "proto: wrong wireType = " .. wire }, 0)
end


-- Calls fn(number, wire type, value) for each field of a message. `run` is what is read: { text =, from =, stop =,
-- depth = }, the range of the innermost message. The value of a varint is an integer; else it is read from the range,
-- which is the value's while `fn` runs: nothing is copied on the way to what is deep inside.
local function each_field(run, fn)
  local text, at, from, stop = run.text, run.from, run.from, run.stop
  run.depth = run.depth + 1
  if run.depth > DEPTH_MAX then
    error({ "exceeded max depth" }, 0)
  end
  while at < stop do
    local key, after = read_varint(text, at, stop)
    local wire, value = key & 7, nil
    if wire == VARINT then
      value, at = read_varint(text, after, stop)
    else
      run.from, at = read_range(text, after, stop, wire)
      run.stop = at
    end
    fn(key >> 3, wire, value)
  end
  run.depth, run.from, run.stop = run.depth - 1, from, stop
end


-- The bytes of the value that `each_field` is at.
local function bytes_of(run)
  return run.text:sub(run.from, run.stop - 1)
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


local function need(wire, wanted)
  if wire ~= wanted then
    wrong_wire(wire)
  end
end


-- Fields of a small message, by number. `wires` has for each number of interest the wire type it must have.
local function small(run, wires)
  local values = {}
  each_field(run, function(number, wire, value)
    if wires[number] then
      need(wire, wires[number])
      values[number] = value or bytes_of(run)
    end
  end)
  return values
end


local TEXT, NUMBERS, EITHER = { BYTES }, { VARINT, VARINT }, { VARINT, VARINT, BYTES }
local ENVELOPE, TYPES = { BYTES, BYTES }, { BYTES, BYTES }


-- A message whose one field is JSON text; without text it is null.
local function json_of(run)
  local raw = small(run, TEXT)[1]
  if not raw or raw == "" then
    return host.json.null
  end
  local value = host.json.decode(raw)
  if value == nil then
    error({ syntax.describe(raw) }, 0)
  end
  return value
end


-- The FieldsV1 of a manager: null if the message has none.
local function fields_of(run)
  local raw = small(run, TEXT)[1]
  return raw and host.json.decode(raw) or host.json.null
end


-- Seconds since 1970 and nanoseconds; nil for an empty message, which stands for no instant. Rules:
-- apimachinery/pkg/apis/meta/v1/{time,micro_time}_proto.go.
local function read_instant(run)
  if run.from == run.stop then
    return nil
  end
  local values = small(run, NUMBERS)
  local seconds = values[1] or 0
  if seconds < instant.FIRST_SECOND or seconds > instant.LAST_SECOND then
    error({ "an instant outside of the years 1 to 9999" }, 0)
  end
  return seconds, values[2] or 0
end


local function time_of(run)
  local seconds = read_instant(run)
  return seconds and instant.seconds(instant.write(seconds)) or host.json.null
end


local function micro_time_of(run)
  local seconds, nanos = read_instant(run)
  if not seconds then
    return host.json.null
  end
  local micros = seconds * 1000000 + (nanos - math.fmod(nanos, 1000)) // 1000
  return instant.micro(instant.write_micro(micros // 1000000, micros % 1000000)) or host.json.null
end


local SCHEMA = { ref = CRD .. "JSONSchemaProps" }
local decode_value


-- A message that stands for one of several shapes in JSON: `readers` has number → function(found, wire, value), which
-- notes what it reads in `found`, and `shape` makes the JSON of what was found.
local function either(readers, shape)
  return function(run)
    local found = {}
    each_field(run, function(number, wire, value)
      if readers[number] then
        readers[number](run, found, wire, value)
      end
    end)
    return shape(found)
  end
end


local function note_schema(run, found, wire)
  need(wire, BYTES)
  found.schema = decode_value(SCHEMA, run, wire)
end


local function note_schemas(run, found, wire)
  need(wire, BYTES)
  found.list = found.list or host.json.array {}
  table.insert(found.list, decode_value(SCHEMA, run, wire))
end


local function note_name(run, found, wire)
  need(wire, BYTES)
  found.list = found.list or host.json.array {}
  table.insert(found.list, bytes_of(run))
end


local function note_allows(_, found, wire, value)
  need(wire, VARINT)
  found.allows = value ~= 0
end


local function list_or_schema(found)
  return found.list or found.schema or host.json.null
end


local SPECIAL = {
  [notation.words.Quantity] = function(run)
    return small(run, TEXT)[1] or "0"
  end,
  [notation.words.IntOrString] = function(run)
    local values = small(run, EITHER)
    return values[1] == 1 and (values[3] or "") or values[2] or 0
  end,
  [notation.words.RawExtension] = json_of,
  [META .. "FieldsV1"] = fields_of,
  [META .. "Time"] = time_of,
  [META .. "MicroTime"] = micro_time_of,
  [CRD .. "JSON"] = json_of,
  [CRD .. "JSONSchemaPropsOrArray"] = either({ note_schema, note_schemas }, list_or_schema),
  [CRD .. "JSONSchemaPropsOrStringArray"] = either({ note_schema, note_name }, list_or_schema),
  [CRD .. "JSONSchemaPropsOrBool"] = either({ note_allows, note_schema }, function(found)
    return found.schema or found.allows == true
  end),
}


local WIRES = { boolean = VARINT, integer = VARINT, string = BYTES, number = FIXED64 }


local function scalar(kind, run, wire, value)
  need(wire, WIRES[kind.type])
  if kind.type == "boolean" then
    return value ~= 0
  elseif kind.type == "number" then
    return (string.unpack("<d", run.text, run.from))
  elseif kind.type == "integer" then
    return value
  elseif kind.format == "byte" then
    return host.base64.encode(bytes_of(run))
  end
  return bytes_of(run)
end


function decode_value(kind, run, wire, value)
  if not kind.ref and not kind.list then
    return scalar(kind, run, wire, value)
  end
  need(wire, BYTES)
  if SPECIAL[kind.ref] then
    return SPECIAL[kind.ref](run)
  elseif kind.ref then
    return decode_message(plan_of(kind.ref), run, {})
  end
  local list = host.json.array {}
  each_field(run, function(_, inner_wire, item)
    list[#list + 1] = decode_value(kind.list, run, inner_wire, item)
  end)
  return list
end


local STRING = { type = "string" }


local function add_entry(map, kind, run, wire)
  local key, found = "", nil
  need(wire, BYTES)
  each_field(run, function(number, inner_wire, value)
    if number == 1 then
      key = scalar(STRING, run, inner_wire, value)
    elseif number == 2 then
      found = decode_value(kind, run, inner_wire, value)
    end
  end)
  if found ~= nil then
    map[key] = found
  end
end


local function add_field(object, field, run, wire, value)
  local kind, name = field.type, field.name
  if kind.map then
    object[name] = object[name] or {}
    add_entry(object[name], kind.map, run, wire)
  elseif kind.list then
    object[name] = object[name] or host.json.array {}
    table.insert(object[name], decode_value(kind.list, run, wire, value))
  else
    object[name] = decode_value(kind, run, wire, value)
  end
end


function decode_message(plan, run, object)
  each_field(run, function(number, wire, value)
    local entry = plan[number]
    if entry and entry.inline then
      need(wire, BYTES)
      decode_message(entry.inline, run, object)
    elseif entry then
      add_field(object, entry, run, wire, value)
    end
  end)
  return object
end


local function run_over(text, from)
  return { text = text, from = from, stop = #text + 1, depth = 0 }
end


local function decode(text)
  local envelope = small(run_over(text, #PREFIX + 1), ENVELOPE)
  local types = small(run_over(envelope[1] or "", 1), TYPES)
  local version, kind = types[1] or "", types[2] or ""
  local group, short = version:match("^(.-)/?([^/]*)$")
  local name = builtin.name_of(group, short, kind)
  if not name then
    error({ NO_KIND:format(kind, version) }, 0)
  end
  return decode_message(plan_of(name), run_over(envelope[2] or "", 1), { apiVersion = version, kind = kind })
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
