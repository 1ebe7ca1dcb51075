--- Literals in a text: the kind of each, the types that it fits, and the words for both in messages.
local names = require "moonloop.names"
local schemas = require "analysis.schemas"

local M = {}

local SCALARS = { string = true, integer = true, number = true, boolean = true, enum = true }
local WORDS = {
  string = "a string", integer = "a whole number", number = "a number", boolean = "true or false", list = "a list",
  map = "a table", class = "a table", table = "a table", array = "a list", object = "a table",
}

--- The kind of a literal, and the words for it; nil: the expression is none.
--- @param node table expression of parser.lua
--- @return string? "string", "integer", "number", "boolean", "table" or "function"
--- @return string? words "'Always'", "a table"
function M.kind(node)
  if node.tag == "string" then
    return "string", ("'%s'"):format(names.text(node.value))
  elseif node.tag == "number" then
    return math.type(node.value) == "integer" and "integer" or "number", tostring(node.value)
  elseif node.tag == "constant" and node.value ~= nil then
    return "boolean", tostring(node.value)
  elseif node.tag == "table" or node.tag == "function" then
    return node.tag, "a " .. node.tag
  end
end


--- The values that a type lists, or nil.
function M.values(type)
  return type.is == "enum" and type.values or type.is == "object" and schemas.values(type.schema) or nil
end


--- Can no table be of this type?
function M.is_scalar(type)
  if type.is == "union" then
    for _, one in ipairs(type) do
      if not M.is_scalar(one) then
        return false
      end
    end
    return true
  elseif type.is == "object" then
    return SCALARS[schemas.plain_type(type.schema) or ""] or false
  end
  return SCALARS[type.is] or false
end


local function contains(values, wanted)
  for _, value in ipairs(values) do
    if value == wanted then
      return true
    end
  end
  return false
end


local function fits_schema(schema, kind, value)
  local plain, values = schemas.plain_type(schema), schemas.values(schema)
  if not plain then
    return true
  elseif values and kind == plain then
    return contains(values, value)
  end
  return plain == kind or plain == "number" and kind == "integer"
    or plain == "integer" and kind == "number" and value == math.floor(value)
end


--- Can a literal that is no table be of this type?
--- @param kind string as M.kind gives it
--- @param value any of the literal
function M.fits(type, kind, value)
  local is = type.is
  if is == "union" then
    for _, one in ipairs(type) do
      if M.fits(one, kind, value) then
        return true
      end
    end
    return false
  elseif is == "object" then
    return fits_schema(type.schema, kind, value)
  elseif is == "enum" then
    return kind == "string" and contains(type.values, value)
  elseif is == "number" then
    return kind == "integer" or kind == "number"
  end
  return is == kind or is == "any" or is == "module" or is == "keys"
end


local function list_of(values)
  local list = {}
  for index, value in ipairs(values) do
    list[index] = type(value) == "string" and ("'%s'"):format(names.text(value)) or tostring(value)
  end
  return (#list == 1 and "" or "one of ") .. table.concat(list, ", ")
end


--- The words for a type: "one of 'Always', 'Never'".
function M.words(type)
  local values = M.values(type)
  if values then
    return list_of(values)
  elseif type.is == "union" then
    local list = {}
    for index, one in ipairs(type) do
      list[index] = M.words(one)
    end
    return table.concat(list, " or ")
  elseif type.is == "class" and type.name == "Kind" then
    return "a kind of moonloop.kind"
  end
  return WORDS[type.is == "object" and schemas.plain_type(type.schema) or type.is] or "another value"
end


--- "; did you mean 'Always'?", or "".
function M.suggestion(text, values)
  local nearest = names.nearest(text, table.concat(values, " "))
  return nearest and ("; did you mean '%s'?"):format(nearest) or ""
end


return M
