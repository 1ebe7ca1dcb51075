--- The internal form of a CRD's spec, for messages that show the spec and for the paths in messages.
---
--- The server moves fields that are equal in all versions to the spec itself. So the path of a wrong schema is
--- "spec.validation.openAPIV3Schema", and "spec.versions[0].schema.openAPIV3Schema" only if the schemas differ.
--- Rules: apiextensions-apiserver/pkg/apis/apiextensions/{types,types_jsonschema}.go, v1/conversion.go.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"

local M = {}

local null, is_array = host.json.null, host.json.is_array
local schema_text

-- Fields of the internal schema in their order: Go's name, ours, and its zero value when it is no pointer.
local SCHEMA = {
  { "ID", "id", '""' }, { "Schema", "$schema", '""' }, { "Ref", "$ref" }, { "Description", "description", '""' },
  { "Type", "type", '""' }, { "Nullable", "nullable", "false" }, { "Format", "format", '""' },
  { "Title", "title", '""' },
  { "Default", "default" }, { "Maximum", "maximum" }, { "ExclusiveMaximum", "exclusiveMaximum", "false" },
  { "Minimum", "minimum" }, { "ExclusiveMinimum", "exclusiveMinimum", "false" }, { "MaxLength", "maxLength" },
  { "MinLength", "minLength" }, { "Pattern", "pattern", '""' }, { "MaxItems", "maxItems" }, { "MinItems", "minItems" },
  { "UniqueItems", "uniqueItems", "false" }, { "MultipleOf", "multipleOf" }, { "Enum", "enum" },
  { "MaxProperties", "maxProperties" }, { "MinProperties", "minProperties" }, { "Required", "required" },
  { "Items", "items" }, { "AllOf", "allOf" }, { "OneOf", "oneOf" }, { "AnyOf", "anyOf" }, { "Not", "not" },
  { "Properties", "properties" }, { "AdditionalProperties", "additionalProperties" },
  { "PatternProperties", "patternProperties" }, { "Dependencies", "dependencies" },
  { "AdditionalItems", "additionalItems" }, { "Definitions", "definitions" }, { "ExternalDocs", "externalDocs" },
  { "Example", "example" }, { "XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields" },
  { "XEmbeddedResource", "x-kubernetes-embedded-resource", "false" },
  { "XIntOrString", "x-kubernetes-int-or-string", "false" }, { "XListMapKeys", "x-kubernetes-list-map-keys" },
  { "XListType", "x-kubernetes-list-type" }, { "XMapType", "x-kubernetes-map-type" },
  { "XValidations", "x-kubernetes-validations" },
}


local function list_text(list, item_text)
  local parts = {}
  for i, item in ipairs(list) do
    parts[i] = item_text(item)
  end
  return "[" .. table.concat(parts, ",") .. "]"
end


local function map_text(map)
  local parts = {}
  for i, key in ipairs(gofmt.sorted_keys(map)) do
    parts[i] = field.json(key) .. ":" .. schema_text(map[key])
  end
  return "{" .. table.concat(parts, ",") .. "}"
end


local function items_text(items)
  if is_array(items) then
    return '{"Schema":null,"JSONSchemas":' .. list_text(items, schema_text) .. "}"
  end
  return '{"Schema":' .. schema_text(items) .. ',"JSONSchemas":null}'
end


local function or_bool_text(value)
  if type(value) == "boolean" then
    return ('{"Allows":%s,"Schema":null}'):format(value)
  end
  return '{"Allows":true,"Schema":' .. schema_text(value) .. "}"
end


local function schemas_text(list)
  return list_text(list, schema_text)
end


--- A rule as messages show it.
function M.rule_text(rule)
  local optional = rule.optionalOldSelf
  return ('{"Rule":%s,"Message":%s,"MessageExpression":%s,"Reason":%s,"FieldPath":%s,"OptionalOldSelf":%s}'):format(
    field.json(rule.rule or ""), field.json(rule.message or ""), field.json(rule.messageExpression or ""),
    rule.reason and field.json(rule.reason) or "null", field.json(rule.fieldPath or ""),
    optional ~= nil and tostring(optional) or "null")
end


local PARTS = {
  ["x-kubernetes-validations"] = function(rules) return list_text(rules, M.rule_text) end,
  items = items_text, allOf = schemas_text, oneOf = schemas_text, anyOf = schemas_text,
  ["not"] = function(schema) return schema_text(schema) end,
  properties = map_text, patternProperties = map_text, definitions = map_text,
  additionalProperties = or_bool_text, additionalItems = or_bool_text,
}


function schema_text(schema)
  local parts = {}
  for i, keyword in ipairs(SCHEMA) do
    local value, text = schema[keyword[2]], keyword[3] or "null"
    if value ~= nil then
      text = (PARTS[keyword[2]] or field.json)(value)
    end
    parts[i] = '"' .. keyword[1] .. '":' .. text
  end
  return "{" .. table.concat(parts, ",") .. "}"
end


--- A schema as messages show it.
M.schema_text = schema_text


-- The fields that may stand in the spec, or in each version.
local SHARED = { "subresources", "schema", "additionalPrinterColumns", "selectableFields" }


--- Which fields all versions have alike: a set of "schema", "subresources", "additionalPrinterColumns" and
--- "selectableFields".
function M.shared(versions)
  local set = {}
  for _, key in ipairs(SHARED) do
    local first, alike = versions[1] and versions[1][key] or null, #versions > 0
    for _, version in ipairs(versions) do
      alike = alike and host.json.equal(version[key] or null, first)
    end
    set[key] = alike
  end
  return set
end


local function text_or_null(value)
  return value == nil and "null" or field.json(value)
end


local function columns_text(columns)
  return list_text(columns, function(column)
    return ('{"Name":%s,"Type":%s,"Format":%s,"Description":%s,"Priority":%d,"JSONPath":%s}'):format(
      text_or_null(column.name or ""), text_or_null(column.type or ""), text_or_null(column.format or ""),
      text_or_null(column.description or ""), column.priority or 0, text_or_null(column.jsonPath or ""))
  end)
end


local function subresources_text(subresources)
  local scale = subresources.scale
  local scale_text = scale and ('{"SpecReplicasPath":%s,"StatusReplicasPath":%s,"LabelSelectorPath":%s}'):format(
    text_or_null(scale.specReplicasPath or ""), text_or_null(scale.statusReplicasPath or ""),
    text_or_null(scale.labelSelectorPath)) or "null"
  return ('{"Status":%s,"Scale":%s}'):format(subresources.status and "{}" or "null", scale_text)
end


local VERSION_PARTS = {
  schema = function(schema)
    local inner = schema.openAPIV3Schema
    return '{"OpenAPIV3Schema":' .. (inner and schema_text(inner) or "null") .. "}"
  end,
  subresources = subresources_text,
  additionalPrinterColumns = columns_text,
  selectableFields = function(fields)
    return list_text(fields, function(one) return '{"JSONPath":' .. text_or_null(one.jsonPath or "") .. "}" end)
  end,
}


local function version_text(version, shared)
  local function part(key)
    local value = not shared[key] and version[key]
    return value and VERSION_PARTS[key](value) or "null"
  end
  return ('{"Name":%s,"Served":%s,"Storage":%s,"Deprecated":%s,"DeprecationWarning":%s,"Schema":%s,"Subresources":%s,'
    .. '"AdditionalPrinterColumns":%s,"SelectableFields":%s}'):format(field.json(version.name or ""),
    version.served or false, version.storage or false, version.deprecated or false,
    text_or_null(version.deprecationWarning), part "schema", part "subresources", part "additionalPrinterColumns",
    part "selectableFields")
end


--- spec.versions as messages show it.
function M.versions_text(versions)
  if versions == nil or versions == null then
    return "null"
  end
  local shared = M.shared(versions)
  return list_text(versions, function(version) return version_text(version, shared) end)
end


return M
