--- Paths to a field of a schema, as rules (`fieldPath`) and selectable fields name it: ".spec.labels['a.b/c']".
---
--- Rules and wordings: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go (ValidFieldPath).
local M = {}

local INVALID = "does not refer to a valid field"

local ESCAPES = { a = "\a", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", v = "\v", ["'"] = "'", ["\\"] = "\\" }


-- The token at a place, and where the next one begins: ".", "[", "]", a text in single quotes, or what stands between.
local function token(text, at)
  local char = text:sub(at, at)
  if char == "" then
    return nil, at
  elseif char == "'" then
    local stop = text:find("[^\\]'", at + 1)
    stop = text:sub(at + 1, at + 1) == "'" and at + 1 or stop and stop + 1 or #text
    return text:sub(at, stop), stop + 1
  elseif char:find "[%.%[%]]" then
    return char, at + 1
  end
  local word = text:match("^[^%.%[%]]+", at)
  return word, at + #word
end


local function tokens(text)
  local at = 1
  return function()
    local found
    found, at = token(text, at)
    return found
  end
end


-- The text within single quotes, or nil and why it is none.
local function unquoted(text)
  if not text:find "^'.*'$" or #text < 2 then
    return nil, "expected single quoted string but got " .. text
  end
  local wrong
  local unescaped = text:sub(2, -2):gsub("\\(.)", function(char)
    wrong = not ESCAPES[char] and char or wrong
    return ESCAPES[char] or ""
  end)
  if wrong then
    return nil, "invalid string literal: invalid escape char \\" .. wrong
  end
  return unescaped
end


-- The text between brackets; the opening bracket has been read already.
local function bracketed(next_token)
  local text = next_token()
  if not text then
    return nil, "unexpected end of JSON path"
  end
  return unquoted(text)
end


-- One step into a schema. @return table|nil the schema there, string the step as paths of errors have it
local function enter(schema, name)
  if next(schema.properties or {}) then
    return schema.properties[name], "." .. name
  end
  local additional = schema.additionalProperties
  return type(additional) == "table" and additional or nil, "[" .. name .. "]"
end


-- The name that a step gives, whose first token has been read, or nil and what is wrong.
local function step_name(first, next_token, no_brackets)
  if first == "[" then
    if no_brackets then
      return nil, "array notation is not allowed"
    end
    return bracketed(next_token)
  elseif first == "." then
    local name = next_token()
    return name, not name and "unexpected end of JSON path" or nil
  end
  return nil, "expected [ or . but got: " .. first
end


local function close(next_token)
  local text = next_token()
  if not text then
    return "unexpected end of JSON path"
  end
  return text ~= "]" and "expected ] but got " .. text or nil
end


--- Follows a path into a schema.
--- @param text string  @param schema table
--- @param no_brackets boolean|nil whether ['name'] is refused
--- @return string|nil path as paths of errors have it ("spec.labels[a.b/c]"), nil when it leads nowhere
--- @return table|string the schema that it leads to, or why it leads nowhere
function M.follow(text, schema, no_brackets)
  local steps, next_token = {}, tokens(text)
  for first in next_token do
    local name, why = step_name(first, next_token, no_brackets)
    if not name then
      return nil, why
    end
    local inner, step = enter(schema, name)
    why = not inner and INVALID or first == "[" and close(next_token) or nil
    if why then
      return nil, why
    end
    schema, steps[#steps + 1] = inner, step
  end
  return (table.concat(steps):gsub("^%.", "")), schema
end


return M
