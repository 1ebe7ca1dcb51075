--- Checks that several kinds share. Each adds field errors to the list `errors`.
---
--- Rules: apimachinery/pkg/util/validation/validation.go, apimachinery/pkg/api/validation/generic.go.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local syntax = require "cluster.apiserver.syntax"

local M = {}

local KEY_MAX = 253
local BAD_KEY = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
  .. "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
local BAD_PATH = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
local NOT_NEGATIVE = "must be greater than or equal to 0"
local NONE = {}


--- The keys of a map, sorted bytewise; of nil none.
function M.sorted_keys(map)
  local keys = {}
  for key in pairs(map or NONE) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end


--- Adds the items of `more` to `errors`, which is returned.
function M.append(errors, more)
  for _, err in ipairs(more or NONE) do
    errors[#errors + 1] = err
  end
  return errors
end


--- An error for each of the messages (nil: none) about `value`.
function M.each(errors, path, value, messages)
  for _, message in ipairs(messages or NONE) do
    errors[#errors + 1] = field.invalid(path, value, message)
  end
end


--- A list that may be missing, or null where its type says so.
function M.list(value)
  return type(value) == "table" and value or NONE
end


--- Makes an empty list null, for types that are stored so.
function M.empty_to_null(object, name)
  if type(object[name]) == "table" and #object[name] == 0 then
    object[name] = host.json.null
  end
end


--- The key of a ConfigMap or Secret.
function M.config_key(key, path, errors)
  if #key > KEY_MAX then
    errors[#errors + 1] = field.invalid(path, key, ("must be no more than %d characters"):format(KEY_MAX))
  end
  if not key:find("^[-._a-zA-Z0-9]+$") then
    errors[#errors + 1] = field.invalid(path, key, BAD_KEY)
  end
  if key == "." or key == ".." then
    errors[#errors + 1] = field.invalid(path, key, "must not be '" .. key .. "'")
  elseif key:sub(1, 2) == ".." then
    errors[#errors + 1] = field.invalid(path, key, "must not start with '..'")
  end
end


--- Returns the error of Go's JSON parser for a text that is no JSON object.
function M.json_complaint(text)
  local value = host.json.decode(text)
  if value == nil then
    return text == "" and "unexpected end of JSON input" or syntax.describe(text)
  end
  local kind = host.json.is_array(value) and "array" or type(value) == "boolean" and "bool" or type(value)
  return "json: cannot unmarshal " .. kind .. " into Go value of type map[string]interface {}"
end


--- A value that may not change.
function M.immutable_value(new, old, path, errors)
  if not host.json.equal(new == nil and host.json.null or new, old == nil and host.json.null or old) then
    errors[#errors + 1] = field.invalid(path, new == nil and host.json.null or new, "field is immutable")
  end
end


--- Once immutable, always immutable.
function M.stays_immutable(new, errors)
  if not new.immutable then
    errors[#errors + 1] = field.forbidden("immutable", "field is immutable when `immutable` is set")
  end
end


--- A number (nil: not given) that may not be below 0.
function M.not_negative(value, path, errors)
  if value and value < 0 then
    errors[#errors + 1] = field.invalid(path, value, NOT_NEGATIVE)
  end
end


--- A number of a port.
function M.port(value, path, errors)
  if value < 1 or value > 65535 then
    errors[#errors + 1] = field.invalid(path, value, "must be between 1 and 65535, inclusive")
  end
end


--- The name of a port, as IANA has them; returns messages or nil.
function M.port_name(name)
  local messages = {}
  if #name > 15 then
    messages[#messages + 1] = "must be no more than 15 characters long"
  end
  if not name:find("^[-a-z0-9]+$") then
    messages[#messages + 1] = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
  end
  if not name:find("[a-z]") then
    messages[#messages + 1] = "must contain at least one letter (a-z)"
  end
  if name:find("--", 1, true) then
    messages[#messages + 1] = "must not contain consecutive hyphens"
  end
  if name:sub(1, 1) == "-" or name:sub(-1) == "-" then
    messages[#messages + 1] = "must not begin or end with a hyphen"
  end
  return messages[1] and messages
end


--- A number of a port, or its name.
function M.port_or_name(value, path, errors)
  if math.type(value) == "integer" then
    M.port(value, path, errors)
  else
    M.each(errors, path, value, M.port_name(value))
  end
end


--- A struct as Go's JSON has it when its type has no names for JSON. `members` lists { name, value } in their order,
--- with a third that is true when the value is such a text itself.
function M.go_struct(members)
  local parts = {}
  for i, member in ipairs(members) do
    local value = member[2] == nil and host.json.null or member[2]
    parts[i] = host.json.encode(member[1]) .. ":" .. (member[3] and value or host.json.encode(value))
  end
  return "{" .. table.concat(parts, ",") .. "}"
end


--- As field.invalid, with a value that is already text.
function M.invalid_text(path, text, detail)
  return { type = "FieldValueInvalid", path = path, detail = text .. ": " .. detail }
end


--- As field.not_supported, with a value that is already text.
function M.unsupported_text(path, text, choices)
  local err = field.not_supported(path, nil, choices)
  err.detail = text .. ": " .. err.detail
  return err
end


--- A path behind a domain: "acme.io/foo".
function M.domain_prefixed_path(value, path, errors)
  if value == "" then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  local domain, rest = value:match("^([^/]+)/(.+)$")
  if not domain then
    errors[#errors + 1] = field.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    return
  end
  M.each(errors, path, domain, names.subdomain(domain))
  if not rest:find("^[%w/%-._~%%!$&'()*+,;=:]+$") then
    errors[#errors + 1] = field.invalid(path, rest, BAD_PATH)
  end
end


--- One of `choices`; the message lists them as they stand here.
function M.choice(value, choices, path, errors)
  for _, choice in ipairs(choices) do
    if choice == value then
      return
    end
  end
  errors[#errors + 1] = field.not_supported(path, value, choices)
end


--- One of `choices`, a list; `required` says whether it has to be given.
--- The message lists them sorted.
function M.one_of(value, choices, path, errors, required)
  if value == nil or required and value == "" then
    if required then
      errors[#errors + 1] = field.required(path, "")
    end
    return
  end
  for _, choice in ipairs(choices) do
    if value == choice then
      return
    end
  end
  local sorted = table.move(choices, 1, #choices, 1, {})
  table.sort(sorted)
  errors[#errors + 1] = field.not_supported(path, value, sorted)
end


--- The set of the words in a list.
function M.set(words)
  local set = {}
  for _, word in ipairs(words) do
    set[word] = true
  end
  return set
end


return M
