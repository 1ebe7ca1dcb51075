--- Checks names, labels and annotations, with kube-apiserver's messages.
---
--- Each check takes a string and returns a list of messages, or nil when the string is valid. A valid string costs a
--- few pattern matches and no table.
--- Rules: apimachinery/pkg/api/validate/content/{dns,kube,path}.go and pkg/util/validation/validation.go.
local M = {}

M.LABEL_MAX = 63
M.SUBDOMAIN_MAX = 253

local LABEL_RE = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
local SUBDOMAIN_RE = LABEL_RE .. "(\\." .. LABEL_RE .. ")*"
local KEY_RE = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

local NOT_LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
  .. "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '"
  .. LABEL_RE .. "')"
local NOT_SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
  .. "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '"
  .. SUBDOMAIN_RE .. "')"
local NOT_WILDCARD = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
  .. "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
  .. "'*.example.com', regex used for validation is '\\*\\." .. SUBDOMAIN_RE .. "')"
local NOT_LABEL_1035 = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
  .. "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
  .. "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
local NOT_KEY = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
  .. "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" .. KEY_RE .. "')"
local NOT_VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
  .. "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
  .. "validation is '(" .. KEY_RE .. ")?')"
local TWO_SLASHES = "a valid label key " .. NOT_KEY
  .. " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"


--- The message for a text of more than `max` bytes.
function M.too_long(max)
  return ("must be no more than %d bytes"):format(max)
end


-- Rules for whole names say it in other words.
local function name_too_long(max)
  return ("must be no more than %d characters"):format(max)
end


-- The same keys and values come again and again: those that were found good are known, up to so many.
local KNOWN_MAX = 2048

local function remembering(check)
  local good, count = {}, 0
  return function(text)
    if good[text] then
      return nil
    end
    local errors = check(text)
    if not errors then
      if count >= KNOWN_MAX then
        good, count = {}, 0
      end
      good[text] = true
      count = count + 1
    end
    return errors
  end
end


local function add(errors, message)
  errors = errors or {}
  errors[#errors + 1] = message
  return errors
end


local function looks_like_label(text)
  return text:find("^[a-z0-9][-a-z0-9]*$") ~= nil and text:byte(-1) ~= 45
end


local function looks_like_subdomain(text)
  return text:find("^[a-z0-9][-.a-z0-9]*$") ~= nil and text:find("[a-z0-9]$") ~= nil
    and not text:find("%.[-.]") and not text:find("-.", 1, true)
end


--- A DNS label: "my-name".
function M.label(text)
  local errors = nil
  if #text > M.LABEL_MAX then
    errors = add(errors, name_too_long(M.LABEL_MAX))
  end
  if not looks_like_label(text) then
    errors = add(errors, looks_like_subdomain(text) and "must not contain dots" or NOT_LABEL)
  end
  return errors
end


--- A DNS label that starts with a letter, as names of services have to.
function M.label_1035(text)
  local errors = nil
  if #text > M.LABEL_MAX then
    errors = add(errors, name_too_long(M.LABEL_MAX))
  end
  if not (looks_like_label(text) and text:find("^%l")) then
    errors = add(errors, NOT_LABEL_1035)
  end
  return errors
end


--- A DNS subdomain: "example.com".
function M.subdomain(text)
  local errors = nil
  if #text > M.SUBDOMAIN_MAX then
    errors = add(errors, name_too_long(M.SUBDOMAIN_MAX))
  end
  if not looks_like_subdomain(text) then
    errors = add(errors, NOT_SUBDOMAIN)
  end
  return errors
end


--- A DNS subdomain behind a "*": "*.example.com".
function M.wildcard(text)
  local errors = nil
  if #text > M.SUBDOMAIN_MAX then
    errors = add(errors, name_too_long(M.SUBDOMAIN_MAX))
  end
  if text:sub(1, 2) ~= "*." or not looks_like_subdomain(text:sub(3)) then
    errors = add(errors, NOT_WILDCARD)
  end
  return errors
end


--- Checks that a text can stand as one part of a path: for names of RBAC objects, and as the last check of every name.
function M.path_segment(text, prefix)
  if not prefix and (text == "." or text == "..") then
    return { ("may not be '%s'"):format(text) }
  end
  local errors = nil
  for _, part in ipairs { "/", "%" } do
    if text:find(part, 1, true) then
      errors = add(errors, ("may not contain '%s'"):format(part))
    end
  end
  return errors
end


-- A prefix may end with a dash, for something follows. As upstream does it, the one before it goes as well.
local function masked(text)
  if #text > 1 and text:byte(-1) == 45 then
    return text:sub(1, -3) .. "a"
  end
  return text
end


--- Makes a check of names that also takes prefixes (metadata.generateName) out of a check of names:
--- check(name, prefix) -> messages or nil.
function M.name_check(check)
  return function(name, prefix)
    return check(prefix and masked(name) or name)
  end
end


M.name_is_subdomain = M.name_check(M.subdomain)
M.name_is_label = M.name_check(M.label)
M.name_is_label_1035 = M.name_check(M.label_1035)


local function key_name(name, errors)
  if name == "" then
    errors = add(errors, "name part must be non-empty")
  elseif #name > M.LABEL_MAX then
    errors = add(errors, "name part " .. name_too_long(M.LABEL_MAX))
  end
  if not (name:find("^[A-Za-z0-9][-A-Za-z0-9_.]*$") and name:find("[A-Za-z0-9]$")) then
    errors = add(errors, "name part " .. NOT_KEY)
  end
  return errors
end


local function check_qualified(text)
  local prefix, name = text:match("^([^/]*)/([^/]*)$")
  if not prefix then
    if text:find("/", 1, true) then
      return { TWO_SLASHES }
    end
    return key_name(text)
  end
  local errors
  if prefix == "" then
    errors = { "prefix part must be non-empty" }
  else
    errors = M.subdomain(prefix)
    for i = 1, #(errors or "") do
      errors[i] = "prefix part " .. errors[i]
    end
  end
  return key_name(name, errors)
end


--- A qualified name: the key of a label, a finalizer ("example.com/name").
M.qualified = remembering(check_qualified)


local function check_value(text)
  local errors = nil
  if #text > M.LABEL_MAX then
    errors = add(errors, M.too_long(M.LABEL_MAX))
  end
  if text ~= "" and not (text:find("^[A-Za-z0-9][-A-Za-z0-9_.]*$") and text:find("[A-Za-z0-9]$")) then
    errors = add(errors, NOT_VALUE)
  end
  return errors
end


--- The value of a label.
M.label_value = remembering(check_value)


return M
