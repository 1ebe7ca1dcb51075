--- Resources embedded in objects of custom kinds: checks their apiVersion, kind and metadata.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"

local is_array = host.json.is_array

local compiled = setmetatable({}, { __mode = "k" })
local compile


local function check_version(value, path, errors)
  if value == "" then
    errors[#errors + 1] = field.invalid(path, value, "must not be empty")
  elseif select(2, value:gsub("/", "")) > 1 then
    errors[#errors + 1] = field.invalid(path, value, "unexpected GroupVersion string: " .. value)
  end
end


local function check_kind(value, path, errors)
  if value == "" then
    errors[#errors + 1] = field.invalid(path, value, "must not be empty")
    return
  end
  local messages = names.label_1035(value:lower())
  if messages then
    errors[#errors + 1] = field.invalid(path, value, "may have mixed case, but should otherwise match: "
      .. table.concat(messages, ","))
  end
end


local function check_metadata(meta, path, errors)
  local copy = setmetatable({ name = meta.name or "fakename" }, { __index = meta })
  for _, err in ipairs(metadata.validate(copy, { namespaced = meta.namespace ~= nil }, names.path_segment)) do
    err.path = path .. err.path:sub(#"metadata" + 1)
    errors[#errors + 1] = err
  end
end


local function check_resource(object, path, errors)
  for _, key in ipairs { "apiVersion", "kind" } do
    if object[key] == nil then
      errors[#errors + 1] = field.required(path .. "." .. key, "")
    end
  end
  if type(object.apiVersion) == "string" then
    check_version(object.apiVersion, path .. ".apiVersion", errors)
  end
  if type(object.kind) == "string" then
    check_kind(object.kind, path .. ".kind", errors)
  end
  if type(object.metadata) == "table" then
    check_metadata(object.metadata, path .. ".metadata", errors)
  end
end


local function walker(schema, parts, additional, items)
  local embedded = schema["x-kubernetes-embedded-resource"]
  return function(value, path, errors)
    if is_array(value) then
      for i = 1, items and #value or 0 do
        if type(value[i]) == "table" then
          items(value[i], ("%s[%d]"):format(path, i - 1), errors)
        end
      end
      return
    end
    if embedded then
      check_resource(value, path, errors)
    end
    for _, key in ipairs(gofmt.sorted_keys(value)) do
      local inner, part = value[key], parts[key]
      if type(inner) == "table" and (part or additional) then
        (part or additional)(inner, part and (path == "" and key or path .. "." .. key)
          or ("%s[%s]"):format(path, key), errors)
      end
    end
  end
end


function compile(schema)
  local known = compiled[schema]
  if known == nil then
    local parts, rest = {}, schema.additionalProperties
    for name, property in pairs(schema.properties or {}) do
      parts[name] = compile(property) or nil
    end
    local additional = type(rest) == "table" and compile(rest)
    local items = schema.items and compile(schema.items)
    known = (schema["x-kubernetes-embedded-resource"] or next(parts) or additional or items)
      and walker(schema, parts, additional, items) or false
    compiled[schema] = known
  end
  return known
end


--- Checks the resources embedded in `object`. @return table list of field errors
return function(schema, object)
  local check, errors = compile(schema), {}
  if check then
    check(object, "", errors)
  end
  return errors
end
