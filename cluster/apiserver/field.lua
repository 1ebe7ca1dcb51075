--- Errors of one field of an object, in kube-apiserver's wording.
---
--- Each constructor returns { type =, path =, value =, detail = }. Paths are strings as the server
--- prints them: "spec.containers[0].name", "metadata.labels[app]".
--- Rules: apimachinery/pkg/util/validation/field/errors.go.
local host = require "cluster.host"

local M = {}

-- The words for each type in a message.
local TITLES = {
  FieldValueNotFound = "Not found",
  FieldValueRequired = "Required value",
  FieldValueDuplicate = "Duplicate value",
  FieldValueInvalid = "Invalid value",
  FieldValueTypeInvalid = "Invalid value",
  FieldValueNotSupported = "Unsupported value",
  FieldValueForbidden = "Forbidden",
  FieldValueTooLong = "Too long",
  FieldValueTooShort = "Too short",
  FieldValueTooMany = "Too many",
  FieldValueTooFew = "Too few",
  InternalError = "Internal error",
}

-- Types whose message leaves the value out.
local WITHOUT_VALUE = {
  FieldValueRequired = true,
  FieldValueForbidden = true,
  FieldValueTooLong = true,
  FieldValueTooShort = true,
  InternalError = true,
}


local function count_text(count, one, many)
  return ("%d %s"):format(count, count == 1 and one or many)
end


local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r",
  ["\a"] = "\\a", ["\b"] = "\\b", ["\f"] = "\\f", ["\v"] = "\\v" }

--- `text` in double quotes, as Go's %q has it for text without exotic characters.
function M.quote(text)
  return '"' .. text:gsub('[%c"\\]', function(char)
    return ESCAPES[char] or ("\\x%02x"):format(char:byte())
  end) .. '"'
end


-- Go writes these as escapes, so that JSON may stand in a page.
local HTML = { ["<"] = "\\u003c", [">"] = "\\u003e", ["&"] = "\\u0026" }

--- `value` as Go's JSON.
function M.json(value)
  return (host.json.encode(value):gsub("[<>&]", HTML))
end


local function value_text(value)
  if type(value) == "string" then
    return M.quote(value)
  end
  return M.json(value)
end


--- The message of an error without its path: "Invalid value: 3: must be …".
function M.body(err)
  local text = TITLES[err.type]
  if not WITHOUT_VALUE[err.type] and err.value ~= nil then
    text = text .. ": " .. value_text(err.value)
  end
  if err.detail and err.detail ~= "" then
    text = text .. ": " .. err.detail
  end
  return text
end


--- A value that has to be there is not.
function M.required(path, detail)
  return { type = "FieldValueRequired", path = path, detail = detail }
end


--- A value breaks a rule; `detail` says which.
function M.invalid(path, value, detail)
  return { type = "FieldValueInvalid", path = path, value = value, detail = detail }
end


--- A value has another JSON type than the schema says.
function M.type_invalid(path, value, detail)
  return { type = "FieldValueTypeInvalid", path = path, value = value, detail = detail }
end


--- A value is none of `choices`, a list of strings.
function M.not_supported(path, value, choices)
  local quoted = {}
  for i, choice in ipairs(choices) do
    quoted[i] = M.quote(tostring(choice))
  end
  local detail = #quoted > 0 and "supported values: " .. table.concat(quoted, ", ") or ""
  return { type = "FieldValueNotSupported", path = path, value = value, detail = detail }
end


--- A value stands twice where it may stand once.
function M.duplicate(path, value)
  return { type = "FieldValueDuplicate", path = path, value = value }
end


--- A value that is well formed may not be here now.
function M.forbidden(path, detail)
  return { type = "FieldValueForbidden", path = path, detail = detail }
end


--- A text has more than `max` bytes. The value is not shown.
function M.too_long(path, _, max)
  local detail = "may not be more than " .. count_text(max, "byte", "bytes")
  return { type = "FieldValueTooLong", path = path, detail = detail }
end


--- A list has `count` items, and may have `max`.
function M.too_many(path, count, max)
  local detail = "must have at most " .. count_text(max, "item", "items")
  return { type = "FieldValueTooMany", path = path, value = count, detail = detail }
end


--- The error for a value that names something that does not exist.
function M.not_found(path, value)
  return { type = "FieldValueNotFound", path = path, value = value }
end


return M
