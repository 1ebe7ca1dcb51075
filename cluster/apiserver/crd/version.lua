--- The parts of a CRD's versions: schema, subresources, columns, selectable fields.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
local defaults = require "cluster.apiserver.crd.defaults"
local field = require "cluster.apiserver.field"
local follow = require("cluster.apiserver.crd.rules.path").follow
local gofmt = require "cluster.apiserver.gofmt"
local internal = require "cluster.apiserver.crd.internal"
local keywords = require "cluster.apiserver.crd.keywords"
local rules = require "cluster.apiserver.crd.rules.check"
local structural = require "cluster.apiserver.schema.structural"

local M = {}

local SELECTABLE_MAX = 8
local SELECTABLE_TYPES = { string = true, boolean = true, integer = true }
local NOT_SELECTABLE = "must point to a field of type string, boolean or integer. "
  .. "Enum string fields and strings with formats are allowed."

local COLUMN_TYPES = { "boolean", "date", "integer", "number", "string" }
local COLUMN_FORMATS = { "byte", "date", "date-time", "double", "float", "int32", "int64", "password" }

-- Keywords that the root may have when status is checked by itself, as schemas and as messages write them.
local AT_ROOT = {
  description = true, type = true, format = true, title = true, maximum = true, exclusiveMaximum = true, minimum = true,
  exclusiveMinimum = true, maxLength = true, minLength = true, pattern = true, maxItems = true, minItems = true,
  uniqueItems = true, multipleOf = true, required = true, items = true, properties = true, externalDocs = true,
  example = true, ["x-kubernetes-preserve-unknown-fields"] = true, ["x-kubernetes-validations"] = true,
}
local AT_ROOT_TEXT = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
  .. "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
  .. "XPreserveUnknownFields XValidations]"


local function add(errors, err)
  errors[#errors + 1] = err
end


local function append(errors, more)
  table.move(more, 1, #more, #errors + 1, errors)
end


local function one_of(list)
  return "must be one of " .. table.concat(list, ",")
end


local function contains(list, value)
  for _, item in ipairs(list) do
    if item == value then
      return true
    end
  end
  return false
end


local function check_root(schema, path, errors)
  if schema.type ~= "object" and (schema.type or "") ~= "" then
    add(errors, field.invalid(path .. ".type", schema.type,
      'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'))
    return
  end
  for _, keyword in ipairs(gofmt.sorted_keys(schema)) do
    if not AT_ROOT[keyword] and (schema[keyword] ~= false or keyword == "additionalProperties") then
      add(errors, field.invalid(path, nil, ("%s: only %s fields are allowed at the root of the schema if the status "
        .. "subresource is enabled"):format(internal.schema_text(schema), AT_ROOT_TEXT)))
      return
    end
  end
end


--- The schema of a version, which stands at `path` (".openAPIV3Schema" at its end).
--- @param unchanged boolean|nil whether it was accepted before: then a rule may cost what it likes
function M.schema(schema, path, has_status, unchanged, errors)
  local found = {}
  if has_status then
    check_root(schema, path, found)
  end
  if schema.nullable then
    add(found, field.forbidden(path .. ".nullable", "nullable cannot be true at the root"))
  end
  local unreadable, context = structural.unreadable(schema), nil
  if not unreadable then
    local more = structural.check(schema, path)
    more = #more > 0 and more or defaults.check(schema, path)
    append(found, more)
    context = #more == 0 and rules.root(schema, unchanged) or nil
  end
  append(found, keywords.check(schema, path, context))
  if unreadable and #found == 0 then
    add(found, field.invalid(path, "", unreadable))
  end
  if context then
    rules.costs(context, path, found)
  end
  append(errors, found)
end


local function is_path(text, path, errors)
  if text:sub(1, 1) ~= "." then
    add(errors, field.invalid(path, text, "must be a simple json path starting with ."))
    return false
  end
  return true
end


local function check_replicas(text, path, under, errors)
  if (text or "") == "" then
    add(errors, field.required(path, ""))
  elseif is_path(text, path, errors) and text:sub(1, #under + 1) ~= under .. "." then
    add(errors, field.invalid(path, text, "should be a json path under " .. under))
  end
end


--- The subresources of a version.
function M.subresources(subresources, path, errors)
  local scale = subresources.scale
  if not scale then
    return
  end
  check_replicas(scale.specReplicasPath, path .. ".scale.specReplicasPath", ".spec", errors)
  check_replicas(scale.statusReplicasPath, path .. ".scale.statusReplicasPath", ".status", errors)
  local selector = scale.labelSelectorPath or ""
  if selector ~= "" and is_path(selector, path .. ".scale.labelSelectorPath", errors)
    and not selector:find "^%.spec%." and not selector:find "^%.status%." then
    add(errors, field.invalid(path .. ".scale.labelSelectorPath", selector,
      "should be a json path under either .spec or .status"))
  end
end


local function check_column(column, path, errors)
  local kind, format, json_path = column.type or "", column.format or "", column.jsonPath or ""
  if (column.name or "") == "" then
    add(errors, field.required(path .. ".name", ""))
  end
  if kind == "" then
    add(errors, field.required(path .. ".type", one_of(COLUMN_TYPES)))
  elseif not contains(COLUMN_TYPES, kind) then
    add(errors, field.invalid(path .. ".type", kind, one_of(COLUMN_TYPES)))
  end
  if format ~= "" and not contains(COLUMN_FORMATS, format) then
    add(errors, field.invalid(path .. ".format", format, one_of(COLUMN_FORMATS)))
  end
  if json_path == "" then
    add(errors, field.required(path .. ".JSONPath", ""))
  else
    is_path(json_path, path .. ".JSONPath", errors)
  end
end


--- The printer columns of a version.
function M.columns(columns, path, errors)
  for i, column in ipairs(columns) do
    check_column(column, ("%s[%d]"):format(path, i - 1), errors)
  end
end


local function check_selectable(json_path, schema, path, seen, errors)
  local valid, target = follow(json_path, schema, true)
  if not valid then
    add(errors, field.invalid(path, json_path, "is an invalid path: " .. target))
    return
  end
  if json_path:find "^%.metadata%f[.\0]" then
    add(errors, field.invalid(path, json_path, "must not point to fields in metadata"))
  end
  if not SELECTABLE_TYPES[target.type] then
    add(errors, field.invalid(path, json_path, NOT_SELECTABLE))
  end
  if seen[json_path] then
    add(errors, field.duplicate(path, json_path))
    return
  end
  seen[json_path] = true
  return true
end


--- The selectable fields of a version with that schema.
function M.selectable(fields, schema, path, errors)
  local seen, count = {}, 0
  for i, one in ipairs(fields) do
    local at = ("%s[%d].jsonPath"):format(path, i - 1)
    if (one.jsonPath or "") == "" then
      add(errors, field.required(at, ""))
    elseif check_selectable(one.jsonPath, schema, at, seen, errors) then
      count = count + 1
    end
  end
  if count > SELECTABLE_MAX then
    add(errors, field.too_many(path, count, SELECTABLE_MAX))
  end
end


return M
