--- Checks each keyword of a CRD's schema.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
--- (ValidateCustomResourceDefinitionOpenAPISchema).
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local rules = require "cluster.apiserver.crd.rules.check"

local M = {}

local is_array, null = host.json.is_array, host.json.null

local TYPES = { "array", "boolean", "integer", "number", "object", "string" }
local TYPE_SET = {}
for _, name in ipairs(TYPES) do
  TYPE_SET[name] = true
end

local META = { metadata = true, kind = true, apiVersion = true }
local LIST_TYPE, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"
local LIST_KEYS, PRESERVE = "x-kubernetes-list-map-keys", "x-kubernetes-preserve-unknown-fields"

-- Keywords of JSON Schema that CRDs do not have.
local UNSUPPORTED = { "id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref" }


local function add(errors, err)
  errors[#errors + 1] = err
end


local function check_standard(schema, path, context, errors)
  local kind = schema.type or ""
  if kind ~= "" and not TYPE_SET[kind] then
    add(errors, field.not_supported(path .. ".type", kind, TYPES))
  end
  if schema.default ~= nil and context.no_defaults then
    add(errors, field.forbidden(path .. ".default", "must not be set " .. context.no_defaults))
  end
  for _, keyword in ipairs(UNSUPPORTED) do
    if schema[keyword] ~= nil then
      add(errors, field.forbidden(path .. "." .. keyword, keyword .. " is not supported"))
    end
  end
  if kind == "null" then
    add(errors, field.forbidden(path .. ".type", "type cannot be set to null, use nullable as an alternative"))
  end
  if is_array(schema.items) and #schema.items > 0 then
    add(errors, field.forbidden(path .. ".items", "items must be a schema object and not an array"))
  end
  if context.in_meta and schema["x-kubernetes-embedded-resource"] then
    add(errors, field.forbidden(path .. ".x-kubernetes-embedded-resource", "must not be used inside of resource meta"))
  end
  if schema.uniqueItems then
    add(errors, field.forbidden(path .. ".uniqueItems",
      "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
  end
end


-- A type that has to be `wanted` because an extension is there.
local function need_type(schema, path, wanted, extension, errors)
  local words = ("must be %s if %s is specified"):format(wanted, extension)
  local kind = schema.type or ""
  if kind ~= wanted then
    add(errors, kind == "" and field.required(path .. ".type", words) or field.invalid(path .. ".type", kind, words))
  end
end


local function check_map_type(schema, path, errors)
  local kind = schema[MAP_TYPE]
  if not kind then
    return
  end
  need_type(schema, path, "object", MAP_TYPE, errors)
  if kind ~= "atomic" and kind ~= "granular" then
    add(errors, field.not_supported(path .. "." .. MAP_TYPE, kind, { "atomic", "granular" }))
  end
end


-- The items of a set are looked at as one.
local function check_set_items(items, path, errors)
  local words = "must be atomic as item of a list with x-kubernetes-list-type=set"
  local list_type = items[LIST_TYPE]
  if items.type == "array" and list_type and list_type ~= "atomic" then
    add(errors, field.invalid(path .. ".items." .. LIST_TYPE, list_type, words))
  elseif items.type == "object" and items[MAP_TYPE] ~= "atomic" then
    add(errors, field.invalid(path .. ".items." .. MAP_TYPE, list_type or null, words))
  end
end


local function check_map_keys(keys, items, path, errors)
  local seen = {}
  for _, key in ipairs(keys) do
    local property = (items.properties or {})[key]
    if not property then
      add(errors, field.invalid(path .. "." .. LIST_KEYS, keys, "entries must all be names of item properties"))
    elseif property.type == "array" or property.type == "object" then
      add(errors, field.invalid(("%s.items.properties[%s].type"):format(path, key), items.type,
        "must be a scalar type if parent array's x-kubernetes-list-type is map"))
    end
    if seen[key] then
      add(errors, field.invalid(path .. "." .. LIST_KEYS, keys, "must not contain duplicate entries"))
    end
    seen[key] = true
  end
end


local function check_list_map(schema, path, errors)
  local keys, items = schema[LIST_KEYS] or {}, schema.items
  if #keys == 0 then
    add(errors, field.required(path .. "." .. LIST_KEYS, "must not be empty if x-kubernetes-list-type is map"))
  end
  if not items then
    add(errors, field.required(path .. ".items", "must have a schema if x-kubernetes-list-type is map"))
  elseif items.type ~= "object" then
    add(errors, field.invalid(path .. ".items.type", items.type or "",
      "must be object if parent array's x-kubernetes-list-type is map"))
  else
    check_map_keys(keys, items, path, errors)
  end
end


-- Items of sets and maps are there, and the keys of maps have a value.
local function check_presence(schema, path, errors)
  local items, kind = schema.items, schema[LIST_TYPE]
  if not items or is_array(items) or (kind ~= "set" and kind ~= "map") then
    return
  end
  if items.nullable then
    add(errors, field.forbidden(path .. ".items.nullable",
      "cannot be nullable when x-kubernetes-list-type is " .. kind))
  end
  local required = {}
  for _, name in ipairs(items.required or {}) do
    required[name] = true
  end
  for _, key in ipairs(kind == "map" and schema[LIST_KEYS] or {}) do
    local property = (items.properties or {})[key]
    local at = ("%s.items.properties[%s]."):format(path, key)
    if property and not required[key] and property.default == nil then
      add(errors, field.required(at .. "default",
        "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
    end
    if property and property.nullable then
      add(errors, field.forbidden(at .. "nullable",
        "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
    end
  end
end


local function check_list_type(schema, path, errors)
  local kind, items = schema[LIST_TYPE], schema.items
  if kind and schema.type ~= "array" then
    need_type(schema, path, "array", LIST_TYPE, errors)
  elseif kind == "set" and items then
    check_set_items(items, path, errors)
  end
  if kind and kind ~= "atomic" and kind ~= "set" and kind ~= "map" then
    add(errors, field.not_supported(path .. "." .. LIST_TYPE, kind, { "atomic", "set", "map" }))
  end
  if schema[LIST_KEYS] and #schema[LIST_KEYS] > 0 and kind ~= "map" then
    local words = "must be map if x-kubernetes-list-map-keys is non-empty"
    add(errors, kind and field.invalid(path .. "." .. LIST_TYPE, kind, words)
      or field.required(path .. "." .. LIST_TYPE, words))
  end
  if kind == "map" then
    check_list_map(schema, path, errors)
  end
  check_presence(schema, path, errors)
end


local check


local function with(context, changes)
  return setmetatable(changes, { __index = context })
end


-- The context for a schema within another one: the same, but for its rules.
local function within(context, inner, step)
  return context.rules and with(context, { rules = rules.within(context.rules, inner, step) }) or context
end


local function check_additional(schema, path, context, errors)
  local additional = schema.additionalProperties
  if additional == nil then
    return
  end
  if next(schema.properties or {}) and additional ~= true then
    add(errors, field.forbidden(path .. ".additionalProperties",
      "additionalProperties and properties are mutual exclusive"))
  end
  if type(additional) == "table" then
    local inner = within(context, additional)
    inner = context.in_meta
      and with(inner, { no_defaults = "inside additionalProperties applying to object metadata" }) or inner
    check(additional, path .. ".additionalProperties", inner, errors)
  end
end


local function check_properties(schema, path, context, errors)
  for _, name in ipairs(gofmt.sorted_keys(schema.properties or {})) do
    local property = schema.properties[name]
    local inner = within(context, property, name)
    if META[name] and (context.root == schema or schema["x-kubernetes-embedded-resource"]) then
      inner = with(inner, {
        in_meta = true, no_defaults = context.root == schema and "in top-level " .. name or context.no_defaults,
      })
    end
    check(property, ("%s.properties[%s]"):format(path, name), inner, errors)
  end
end


-- Only items of lists that are maps have an old value to be compared with.
local function check_items(schema, path, context, errors)
  local items = schema.items
  if not items or is_array(items) then
    return
  end
  local inner = within(context, items)
  if context.rules and schema[LIST_TYPE] ~= "map" then
    inner.uncorrelated = context.uncorrelated or path
  end
  check(items, path .. ".items", inner, errors)
end


local function check_logical_schemas(schema, path, context, errors)
  context = context.rules and with(context, { rules = false }) or context
  if schema["not"] then
    check(schema["not"], path .. ".not", context, errors)
  end
  for _, junctor in ipairs { "allOf", "oneOf", "anyOf" } do
    for i, inner in ipairs(schema[junctor] or {}) do
      check(inner, ("%s.%s[%d]"):format(path, junctor, i - 1), context, errors)
    end
  end
end


function check(schema, path, context, errors)
  local before = #errors
  check_standard(schema, path, context, errors)
  check_additional(schema, path, context, errors)
  check_properties(schema, path, context, errors)
  check_logical_schemas(schema, path, context, errors)
  check_items(schema, path, context, errors)
  if schema[PRESERVE] == false then
    add(errors, field.invalid(path .. "." .. PRESERVE, false, "must be true or undefined"))
  end
  check_map_type(schema, path, errors)
  check_list_type(schema, path, errors)
  rules.texts(schema, path, errors)
  if context.rules and #errors == before then
    rules.programs(context.rules, path, context.uncorrelated)
  end
end


--- Checks the keywords of a schema that stands at `path`.
--- @param rules_context table|nil of its rules (rules/check.lua); nil: they are not compiled
--- @return table list of field errors
function M.check(schema, path, rules_context)
  local errors = {}
  check(schema, path, { root = schema, rules = rules_context or false }, errors)
  if rules_context then
    table.move(rules_context.errors, 1, #rules_context.errors, #errors + 1, errors)
  end
  return errors
end


return M
