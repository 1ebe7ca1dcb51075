--- Reads a field or an element of a value: a.b, a[i], and whether it is there.
---
--- Rules: cel-go interpreter/attributes.go.
local floats = require "cluster.cel.floats"
local numbers = require "cluster.cel.numbers"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local null = values.null


-- A key as messages show it.
local function show(key)
  local tag = values.tag(key)
  if tag == "uint" then
    return numbers.uint_to_text(key)
  elseif tag == "double" then
    return floats.general(key)
  elseif tag == "bytes" then
    return key.text
  end
  return type(key) == "table" and values.type_name(key) or tostring(key)
end


-- An index of a list, counted from 0, as an integer; nil when it is none.
local function list_index(index)
  local kind = math.type(index)
  if kind == "integer" then
    return index
  elseif kind == "float" then
    return math.tointeger(index)
  elseif values.tag(index) == "uint" and index.bits >= 0 then
    return index.bits
  end
  return nil
end


-- Each: the element; nil and a message when there can be none; nil alone when it is not there.
local FIND = {
  map = function(map, key)
    if values.key(key) == nil and values.tag(key) ~= "double" then
      return nil, "unsupported key type"
    end
    return values.lookup(map, key)
  end,
  object = function(object, name)
    local field = types.field(object.type, name)
    local key = field and field.key or name
    local item = field and object.items[key]
    if item == nil or item == null then -- null is as good as no field
      return nil
    end
    return object.convert(key, item)
  end,
  list = function(list, index)
    local at = list_index(index)
    if not at then
      if math.type(index) == "float" then
        return nil, ("unsupported index value %s in list"):format(show(index))
      end
      return nil, ("unsupported index type '%s' in list"):format(values.type_name(index))
    end
    if at < 0 or at >= #list.items then
      return nil
    end
    return values.element(list, at + 1)
  end,
}


local function missing(value, key)
  if values.tag(value) == "list" then
    return nil, "index out of bounds: " .. show(key)
  end
  return nil, "no such key: " .. show(key)
end


--- The element of a value.
--- @param value any
--- @param key any a field's name, a key, an index
--- @param strict boolean|nil see get_optional
--- @return any|nil element
--- @return string? message
function M.get(value, key, strict)
  if type(value) ~= "table" then
    return missing(value, key)
  elseif value.tag == "optional_type" then
    return M.get_optional(value, key, strict)
  end
  local find = FIND[value.tag]
  if not find then
    return missing(value, key)
  end
  local element, message = find(value, key)
  if element == nil then
    if message then
      return nil, message
    end
    return missing(value, key)
  end
  return element
end


--- The element as an optional; for an optional value, the element of the value in it. If a value cannot have elements,
--- the result is none; with `strict` it is an error.
function M.get_optional(value, key, strict)
  if values.tag(value) == "optional_type" then
    if value.value == nil then
      return value
    end
    value = value.value
  end
  local find = FIND[values.tag(value)]
  if not find then
    if strict then
      return missing(value, key)
    end
    return values.none
  end
  local element, message = find(value, key)
  if element == nil then
    if message then
      return nil, message
    end
    return values.none
  end
  return values.optional(element)
end


--- Is the element there?
--- @param strict boolean|nil a value without elements is a mistake
--- @return boolean|nil
--- @return string? message
function M.has(value, key, strict)
  local found, message = M.get_optional(value, key, strict)
  if found == nil then
    return nil, message
  end
  return found.value ~= nil
end


return M
