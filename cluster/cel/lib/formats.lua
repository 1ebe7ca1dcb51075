--- Kubernetes' library of formats: format.dns1123Label().validate(text).
---
--- Rules: apiserver/pkg/cel/library/format.go.
local host = require "cluster.host"
local calendar = require "cluster.cel.calendar"
local names = require "cluster.names"
local types = require "cluster.cel.types"
local urls = require "cluster.cel.urls"
local values = require "cluster.cel.values"

local M = {}

local TYPE = types.object "kubernetes.NamedFormat"
M.short = { format = TYPE }

local Format = values.class "kubernetes.NamedFormat"
Format.type = TYPE


function Format:equal(other)
  return self.name == other.name
end


Format.__tostring = function(format)
  return format.name
end


local function name_check(check, prefix)
  return function(text)
    return check(text, prefix)
  end
end


-- A format with only one possible message.
local function test_of(test, message)
  return function(text)
    return not test(text) and { message } or nil
  end
end


local function is_uuid(text)
  local hex = text:lower():gsub("-", "")
  return #hex == 32 and not hex:find "%X" and text:find "^%x+%-?%x+%-?%x+%-?%x+%-?%x+$" ~= nil
end


local function is_date(text)
  return calendar.read(text .. "T00:00:00Z") ~= nil
end


local function is_datetime(text)
  return calendar.read((text:upper():gsub(" ", "T", 1))) ~= nil
end


local function check_uri(text)
  local url, message = urls.read(text)
  return not url and { message } or nil
end


-- name → { name that it shows, check, size of its regular expression as costs count it }
local FORMATS = {
  dns1123Label = { "DNS1123Label", name_check(names.name_is_label, false), 30 },
  dns1123Subdomain = { "DNS1123Subdomain", name_check(names.name_is_subdomain, false), 60 },
  dns1035Label = { "DNS1035Label", name_check(names.name_is_label_1035, false), 30 },
  qualifiedName = { "QualifiedName", names.qualified, 60 },
  dns1123LabelPrefix = { "DNS1123LabelPrefix", name_check(names.name_is_label, true), 30 },
  dns1123SubdomainPrefix = { "DNS1123SubdomainPrefix", name_check(names.name_is_subdomain, true), 60 },
  dns1035LabelPrefix = { "DNS1035LabelPrefix", name_check(names.name_is_label_1035, true), 30 },
  labelValue = { "LabelValue", names.label_value, 40 },
  uri = { "URI", check_uri, 1000 },
  uuid = { "uuid", test_of(is_uuid, "does not match the UUID format"), 80 },
  byte = { "byte", test_of(host.base64.decode, "invalid base64"), 100 },
  date = { "date", test_of(is_date, "invalid date"), 120 },
  datetime = { "datetime", test_of(is_datetime, "invalid datetime"), 120 },
}

local made = {}
for name, entry in pairs(FORMATS) do
  made[name] = setmetatable({ name = entry[1], check = entry[2], regex_size = entry[3] }, Format)
end


local function validate(format, text)
  local messages = format.check(text)
  if not messages or #messages == 0 then
    return values.none
  end
  return values.optional(values.list(messages))
end


local function validate_cost(format, text)
  return math.ceil((1 + values.size(text)) * 0.1) * math.ceil(format.regex_size * 0.25)
end


--- Adds them.
function M.add(functions)
  functions:add("validate", "format-validate", "format.(string) -> optional(list(string))", validate)
  functions:cost(validate_cost)
  functions:add("format.named", "format-named", "(string) -> optional(format)", function(name)
    return made[name] and values.optional(made[name]) or values.none
  end)
  for name, format in pairs(made) do
    functions:add("format." .. name, "format." .. name, "() -> format", function()
      return format
    end)
  end
end


return M
