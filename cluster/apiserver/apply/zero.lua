--- The fields of a built-in kind that exist before a client sets any: upstream's Go types always write them.
--- Field management compares a new object with these, so that nobody owns "spec".
--- Rules: encoding/json: fields without omitempty, and structs that are not pointers.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local notation = require "cluster.apiserver.schema.notation"

local null = host.json.null

local SCALARS = { string = "", integer = 0, boolean = false, number = 0 }
local WORDS = {
  [notation.words.Quantity] = "0", [notation.words.IntOrString] = 0, [notation.words.RawExtension] = null,
}

local M = {}

local objects = {}   -- full name of a definition -> object


local zero_struct


-- The zero value of a definition, where no pointer is used.
local function zero_value(name, field)
  if WORDS[name] ~= nil then
    return WORDS[name]
  elseif builtin.record(name).plain then
    return not field.omitzero and null or nil
  end
  return zero_struct(name)
end


local function zero_field(field)
  local kind = field.type
  if kind.ref and not field.pointer then
    return zero_value(kind.ref, field)
  elseif not field.written then
    return nil
  elseif field.pointer or not kind.type or kind.format == "byte" then
    return null
  end
  return SCALARS[kind.type]
end


function zero_struct(name)
  local object = objects[name]
  if not object then
    object = {}
    for _, field in ipairs(builtin.record(name).fields) do
      object[field.name] = zero_field(field)
    end
    objects[name] = object
  end
  return object
end


--- The object that a new one of the resource `res` is compared with. Shared; never changed.
function M.of(res)
  return res.builtin and zero_struct(builtin.name_of(res.group, res.version, res.kind)) or {}
end


return M
