--- Checks that a schema is structural: it gives the type of each value outside of anyOf, oneOf, allOf and not.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apiserver/schema/{convert,validation,complete}.go.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local regex = require "cluster.regex"

local M = {}

local is_array = host.json.is_array
local NONE = {}
local EMBEDDED = "x-kubernetes-embedded-resource"
local PRESERVE = "x-kubernetes-preserve-unknown-fields"
local INT_OR_STRING = "x-kubernetes-int-or-string"

local NO_TYPE = {
  root = "must not be empty at the root", item = "must not be empty for specified array items",
  field = "must not be empty for specified object fields",
}


local function filled(value)
  return value ~= nil and value ~= false and value ~= "" and not (type(value) == "table" and next(value) == nil)
end


-- Keywords that no schema may have, in the order in which they are looked for.
local UNSUPPORTED = {
  { "id", "id" }, { "$schema", "schema" }, { "$ref", "$ref" }, { "patternProperties", "patternProperties" },
  { "dependencies", "dependencies" }, { "additionalItems", "additionalItems" }, { "definitions", "definitions" },
}


local JUNCTORS = { "allOf", "anyOf", "oneOf" }


--- The schemas that stand within another one, in a fixed order: calls visit(schema, path, keyword, name).
--- @param path string|nil that of `schema`; nil: visit gets no paths
function M.each_part(schema, path, visit)
  local items, additional, properties = schema.items, schema.additionalProperties, schema.properties
  if type(items) == "table" and not is_array(items) then
    visit(items, path and path .. ".items", "items")
  end
  if properties then
    for _, name in ipairs(gofmt.sorted_keys(properties)) do
      visit(properties[name], path and ("%s.properties[%s]"):format(path, name), "properties", name)
    end
  end
  if type(additional) == "table" then
    visit(additional, path and path .. ".additionalProperties", "additionalProperties")
  end
  for _, junctor in ipairs(JUNCTORS) do
    for i, inner in ipairs(schema[junctor] or NONE) do
      visit(inner, path and ("%s.%s[%d]"):format(path, junctor, i - 1), junctor, i)
    end
  end
  if schema["not"] then
    visit(schema["not"], path and path .. ".not", "not")
  end
end


--- Why a schema cannot even be read as a structural one, or nil.
function M.unreadable(schema)
  for _, keyword in ipairs(UNSUPPORTED) do
    if schema[keyword[1]] ~= nil and schema[keyword[1]] ~= "" then
      return ("OpenAPIV3Schema '%s' is not supported"):format(keyword[2])
    end
  end
  if is_array(schema.items) and #schema.items > 0 then
    return "OpenAPIV3Schema 'items' must be a schema, but is an array"
  elseif schema[PRESERVE] == false then
    return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
  end
  local why
  M.each_part(schema, nil, function(inner)
    why = why or M.unreadable(inner)
  end)
  return why
end


-- Keywords that alternatives cannot have; each with the words of the error.
local FORBIDDEN = {
  { "type", "must be empty to be structural" }, { "additionalProperties", "must be undefined to be structural" },
  { "default", "must be undefined to be structural" }, { "title", "must be empty to be structural" },
  { "description", "must be empty to be structural" }, { "nullable", "must be false to be structural" },
  { PRESERVE, "must be false to be structural" }, { EMBEDDED, "must be false to be structural" },
  { INT_OR_STRING, "must be false to be structural" },
  { "x-kubernetes-list-map-keys", "must be empty to be structural" },
  { "x-kubernetes-list-type", "must be undefined to be structural" },
  { "x-kubernetes-map-type", "must be undefined to be structural" },
  { "x-kubernetes-validations", "must be empty to be structural" },
}

local check_logical_schemas


-- A schema within anyOf, allOf, oneOf or not.
local function check_alternative(schema, path, errors, skip_any_of)
  check_logical_schemas(schema, path, errors, skip_any_of, false)
  if type(schema.items) == "table" then
    check_alternative(schema.items, path .. ".items", errors)
  end
  for _, name in ipairs(gofmt.sorted_keys(schema.properties or {})) do
    check_alternative(schema.properties[name], ("%s.properties[%s]"):format(path, name), errors)
  end
  for _, rule in ipairs(FORBIDDEN) do
    local value = schema[rule[1]]
    local says = filled(value) or (value ~= nil and rule[1] == "default")
    if says and (rule[1] ~= "additionalProperties" or type(value) == "table") then
      errors[#errors + 1] = field.forbidden(path .. "." .. rule[1], rule[2])
    end
  end
  if schema.properties and schema.properties.metadata then
    errors[#errors + 1] = field.forbidden(path .. ".properties[metadata]", "must not be specified in a nested context")
  end
end


local function is_int_or_string(list)
  return list ~= nil and host.json.equal(list, host.json.array { { type = "integer" }, { type = "string" } })
end


function check_logical_schemas(schema, path, errors, skip_any_of, skip_first)
  for _, junctor in ipairs { "anyOf", "allOf", "oneOf" } do
    for i, inner in ipairs(junctor == "anyOf" and skip_any_of and {} or schema[junctor] or {}) do
      check_alternative(inner, ("%s.%s[%d]"):format(path, junctor, i - 1), errors,
        skip_first and junctor == "allOf" and i == 1)
    end
  end
  if schema["not"] then
    check_alternative(schema["not"], path .. ".not", errors)
  end
  if not filled(schema.pattern) then
    return
  end
  local compiled, why = regex.compile(schema.pattern)
  if not compiled then
    errors[#errors + 1] = field.invalid(path .. ".pattern", schema.pattern,
      "must be a valid regular expression, but isn't: " .. why)
  end
end


local function check_type(schema, level, path, errors)
  local kind = schema.type or ""
  if schema[EMBEDDED] and kind ~= "object" then
    local words = "must be object if x-kubernetes-embedded-resource is true"
    errors[#errors + 1] = kind == "" and field.required(path .. ".type", words)
      or field.invalid(path .. ".type", kind, words)
  elseif kind == "" and not schema[INT_OR_STRING] and not schema[PRESERVE] then
    errors[#errors + 1] = field.required(path .. ".type", NO_TYPE[level])
  end
  if level == "root" and kind ~= "" and kind ~= "object" then
    errors[#errors + 1] = field.invalid(path .. ".type", kind, "must be object at the root")
  end
end


-- metadata at the root may restrict the names, and say nothing else.
local function restricts_names_only(metadata)
  for key, value in pairs(metadata) do
    if key ~= "type" and key ~= "properties" and key ~= "default" and filled(value) then
      return false
    end
  end
  for name in pairs(metadata.properties or {}) do
    if name ~= "name" and name ~= "generateName" then
      return false
    end
  end
  return true
end


local function check_metadata(schema, level, path, errors)
  local properties = schema.properties or {}
  local is_resource = level == "root" or schema[EMBEDDED]
  for _, name in ipairs { "kind", "apiVersion" } do
    if is_resource and properties[name] and properties[name].type ~= "string" then
      errors[#errors + 1] = field.invalid(("%s.properties[%s].type"):format(path, name), properties[name].type or "",
        "must be string")
    end
  end
  local metadata, inner = properties.metadata, path .. ".properties[metadata]"
  if metadata and is_resource and metadata.type ~= "object" then
    errors[#errors + 1] = field.invalid(inner .. ".type", metadata.type or "", "must be object")
  end
  if metadata and level == "root" and not restricts_names_only(metadata) then
    errors[#errors + 1] = field.forbidden(inner,
      "must not specify anything other than name and generateName, but metadata is implicitly specified")
  end
end


local function check_extensions(schema, path, errors)
  for _, extension in ipairs { PRESERVE, EMBEDDED } do
    if schema[INT_OR_STRING] and schema[extension] then
      errors[#errors + 1] = field.invalid(path .. "." .. extension, true,
        "must be false if x-kubernetes-int-or-string is true")
    end
  end
  if schema[EMBEDDED] and schema.additionalProperties ~= nil then
    errors[#errors + 1] = field.forbidden(path .. ".additionalProperties",
      "must not be used if x-kubernetes-embedded-resource is set")
  end
  if schema[EMBEDDED] and not schema[PRESERVE] and not filled(schema.properties) then
    errors[#errors + 1] = field.required(path .. ".properties",
      "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields")
  end
end


local function check(schema, level, path, errors)
  if schema.type == "array" and not schema.items then
    errors[#errors + 1] = field.required(path .. ".items", "must be specified")
  end
  if schema.items then
    check(schema.items, "item", path .. ".items", errors)
  end
  for _, name in ipairs(gofmt.sorted_keys(schema.properties or {})) do
    check(schema.properties[name], "field", ("%s.properties[%s]"):format(path, name), errors)
  end
  if schema.additionalProperties ~= nil and level == "root" then
    errors[#errors + 1] = field.forbidden(path .. ".additionalProperties", "must not be used at the root")
  end
  if type(schema.additionalProperties) == "table" then
    check(schema.additionalProperties, "field", path .. ".additionalProperties", errors)
  end
  check_extensions(schema, path, errors)
  local all_of = schema.allOf and schema.allOf[1]
  check_logical_schemas(schema, path, errors, is_int_or_string(schema.anyOf), all_of and is_int_or_string(all_of.anyOf))
  check_type(schema, level, path, errors)
  check_metadata(schema, level, path, errors)
end


-- A part that alternatives name must also be described outside of them; upstream checks only those of the root.
local check_complete


local function check_described(alternative, schema, path, from, errors)
  if not schema then
    errors[#errors + 1] = field.required(path, "because it is defined in " .. from)
    return
  end
  check_complete(alternative, schema, path, from, errors)
  if type(alternative.items) == "table" then
    check_described(alternative.items, schema.items, path .. ".items", from .. ".items", errors)
  end
  for _, name in ipairs(gofmt.sorted_keys(alternative.properties or {})) do
    local step = (".properties[%s]"):format(name)
    check_described(alternative.properties[name], (schema.properties or {})[name], path .. step, from .. step, errors)
  end
end


function check_complete(alternative, schema, path, from, errors)
  if alternative["not"] then
    check_described(alternative["not"], schema, path, from .. ".not", errors)
  end
  for _, junctor in ipairs { "allOf", "anyOf", "oneOf" } do
    for i, inner in ipairs(alternative[junctor] or {}) do
      check_described(inner, schema, path, ("%s.%s[%d]"):format(from, junctor, i - 1), errors)
    end
  end
end


local function message_of(err)
  return err.path .. ": " .. field.body(err)
end


--- Returns the errors that keep a schema from being structural. @param path string its place in its CRD
--- @return table list of field errors, sorted by their messages
function M.check(schema, path)
  local errors = {}
  check(schema, "root", path, errors)
  check_complete(schema, schema, path, path, errors)
  local messages = {} -- of a deep schema they are long
  for _, err in ipairs(errors) do
    messages[err] = message_of(err)
  end
  table.sort(errors, function(a, b) return messages[a] < messages[b] end)
  return errors
end


return M
