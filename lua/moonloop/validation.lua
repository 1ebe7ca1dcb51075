-- Turns the results of `validate` into the answer that the host sends to the API server, after each call of it.
local _, host = ...
local names = host.require "moonloop.names"
local fields = host.require "moonloop.fields"
local result = host.require "moonloop.result"

local M = {}

local CAUSES_MAX = 64
local WARNINGS_MAX = 16 -- beyond 4096 bytes in all the API server cuts them
local WARNING_BYTES = 256 -- likewise
local MESSAGE_BYTES = 1024


-- At most `most` bytes, whole characters, in one line.
local function cut(text, most)
  if #text > most then
    local last = most
    while last > 0 and (text:byte(last + 1) & 0xC0) == 0x80 do
      last = last - 1
    end
    text = text:sub(1, last)
  end
  return text
end


local function cause(field, message)
  return { reason = "FieldValueInvalid", field = cut(field, MESSAGE_BYTES), message = cut(message, MESSAGE_BYTES) }
end


-- The causes in a list of { field =, message = }; or nil and the problem.
local function causes_of(list)
  local copy, causes = host.copy(list), {}
  for index, entry in ipairs(copy) do
    local one = type(entry) == "table" and host.copy(entry) or {}
    if type(one.field) ~= "string" or type(one.message) ~= "string" or names.unknown(one, fields.cause) then
      return nil, ("entry %d: expected { field =, message = }, two strings"):format(index)
    end
    if index <= CAUSES_MAX then
      causes[index] = cause(one.field, one.message)
    end
  end
  for key in pairs(copy) do
    if math.type(key) ~= "integer" or key < 1 or key > #copy then
      return nil, ("expected a list of { field =, message = }, found the key '%s'"):format(names.text(key))
    end
  end
  return causes
end


-- The texts of a list of warnings, or of one; or nil and the problem.
local function warnings_of(value)
  local list, warnings = value, host.array()
  if type(value) == "string" then
    list = { value }
  elseif type(value) ~= "table" then
    return nil, ("expected a string or a list of strings, got a %s"):format(type(value))
  end
  for index, text in ipairs(host.copy(list)) do
    if type(text) ~= "string" then
      return nil, ("entry %d: expected a string, got a %s"):format(index, type(text))
    end
    if index <= WARNINGS_MAX then
      warnings[index] = cut(text:gsub("%c", " "), WARNING_BYTES)
    end
  end
  return warnings
end


local function message_of(causes)
  local texts = {}
  for index, one in ipairs(causes) do
    texts[index] = one.field == "" and one.message or ("%s: %s"):format(one.field, one.message)
  end
  return #texts == 1 and texts[1] or ("[%s]"):format(table.concat(texts, ", "))
end


local function denial(message, causes)
  local status = {
    status = "Failure", reason = "Invalid", code = 422, message = cut(message, MESSAGE_BYTES * 4),
  }
  if causes and #causes > 0 then
    status.details = { causes = host.array(causes) }
  end
  return status
end


-- Returns the status of a denial; nil if the object is allowed; nil and the problem for any other result.
local function status_of(value)
  if value == nil then
    return nil
  elseif type(value) == "string" then
    return denial(value)
  elseif type(value) ~= "table" then
    return nil, ("a %s; expected nothing, why not, a list of { field =, message = }, or ctx.invalid(field, why)")
      :format(type(value))
  end
  local field, message = result.invalid_of(value)
  if field then
    local causes = { cause(field, message) }
    return denial(message_of(causes), causes)
  end
  local causes, problem = causes_of(value)
  if not causes then
    return nil, "a list with a mistake: " .. problem
  end
  return #causes > 0 and denial(message_of(causes), causes) or nil
end


--- Reads the results of validate. Raises an error for a value that it may not return.
---@param where string "cnat.lua:27", where validate is defined
---@return table answer { allowed =, status =, warnings = } of an AdmissionReview
function M.answer(where, value, warned, ...)
  local status, problem = status_of(value)
  local warnings
  if not problem and select("#", ...) > 0 then
    problem = "more than two values"
  end
  if not problem and warned ~= nil then
    warnings, problem = warnings_of(warned)
    problem = problem and "a second result that is no warning: " .. problem
  end
  if problem then
    error(("%s: validate returned %s"):format(where, problem), 0)
  end
  return { allowed = status == nil, status = status, warnings = warnings }
end


return M
