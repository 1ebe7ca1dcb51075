--- How objects of a custom kind are written: the checks for each part, and the fields that a write must not change.
---
--- Rules and wordings: apiextensions-apiserver/pkg/registry/customresource/{strategy,status_strategy,validator}.go.
local check_embedded = require "cluster.apiserver.schema.embedded"
local check_lists = require "cluster.apiserver.schema.lists"
local default = require "cluster.apiserver.schema.default"
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local jsonpath = require "cluster.apiserver.crd.jsonpath"
local respond = require "cluster.apiserver.respond"
local rules = require "cluster.apiserver.crd.rules"
local status = require "cluster.apiserver.status"
local unstructured = require "cluster.apiserver.unstructured"
local validate = require "cluster.apiserver.schema.validate"

local M = {}

local null = host.json.null
local REPLICAS_MAX = 0x7fffffff
local STANDARD_FINALIZERS = { orphan = true, foregroundDeletion = true, kubernetes = true }


local function append(list, more)
  table.move(more, 1, #more, #list + 1, list)
end


local function check_replicas(object, path, errors)
  local count, why = unstructured.find(object, path, "int64")
  if why then
    errors[#errors + 1] = field.invalid(path, 0, why)
  elseif count and count < 0 then
    errors[#errors + 1] = field.invalid(path, count, "should be a non-negative integer")
  elseif count and count > REPLICAS_MAX then
    errors[#errors + 1] = field.invalid(path, count, ("should be less than or equal to %d"):format(REPLICAS_MAX))
  end
end


local function check_scale_status(object, scale, errors)
  if not scale then
    return
  end
  check_replicas(object, scale.statusReplicasPath, errors)
  if scale.labelSelectorPath then
    local _, why = unstructured.find(object, scale.labelSelectorPath, "string")
    if why then
      errors[#errors + 1] = field.invalid(scale.labelSelectorPath, "", why)
    end
  end
end


local function check_scale(object, scale, errors)
  if scale then
    check_replicas(object, scale.specReplicasPath, errors)
    check_scale_status(object, scale, errors)
  end
end


local function validator(schema, scale)
  return function(object)
    local errors = validate(schema, object)
    check_scale(object, scale, errors)
    append(errors, check_embedded(schema, object))
    append(errors, check_lists(schema, object))
    return errors
  end
end


local function update_validator(schema, scale)
  return function(object, old)
    local errors = validate(schema, object, { old = old })
    check_scale(object, scale, errors)
    append(errors, check_embedded(schema, object))
    local repeated = check_lists(schema, object)
    if #repeated > 0 and #check_lists(schema, old) == 0 then
      append(errors, repeated)
    end
    return errors
  end
end


local function status_validator(schema, scale)
  local of_status = schema.properties and schema.properties.status
  return function(object, old)
    local errors = {}
    if of_status and object.status ~= nil then
      errors = validate(of_status, object.status, { root = "status", old = old.status })
    end
    check_scale_status(object, scale, errors)
    local repeated = check_lists(schema, object)
    if #repeated > 0 and #check_lists(schema, old) == 0 then
      append(errors, repeated)
    end
    return errors
  end
end


-- Warns of finalizers that look like somebody else's; those of `old` are known.
local function warn_of_finalizers(object, old, request)
  local known = {}
  for _, finalizer in ipairs(old and old.metadata.finalizers or {}) do
    known[finalizer] = true
  end
  for _, finalizer in ipairs(object.metadata.finalizers or {}) do
    if not known[finalizer] and not STANDARD_FINALIZERS[finalizer] and not finalizer:find("/", 1, true) then
      local path = finalizer:find(".", 1, true) and " including a path (/)" or ""
      respond.warn(request, ('metadata.finalizers: "%s": prefer a domain-qualified finalizer name%s to avoid '
        .. "accidental conflicts with other finalizer writers"):format(finalizer, path))
    end
  end
end


local function preparers(has_status, terminating)
  local function create(object, ctx)
    if terminating then
      return nil, status.forbidden(ctx.request.res, object.metadata.name,
        "create not allowed while custom resource definition is terminating")
    end
    if has_status then
      object.status = nil
    end
    warn_of_finalizers(object, nil, ctx.request)
  end
  local function update(object, old, ctx)
    if has_status then
      object.status = old.status
    end
    warn_of_finalizers(object, old, ctx.request)
  end
  return create, update
end


-- A new object comes without a status; what the schema has for none it gets when it is stored, as the real server fills
-- in defaults of what it reads back.
local function completer(schema)
  local of_status = (schema.properties or {}).status
  if not of_status or of_status.default == nil then
    return nil
  end
  local only_status = { type = "object", properties = { status = of_status } }
  return function(object)
    default(only_status, object)
  end
end


-- A write of the status keeps everything else, but says who manages what.
local function prepare_status(object, old)
  local new_status, managers = object.status, object.metadata.managedFields
  for key in pairs(object) do
    object[key] = nil
  end
  for key, value in pairs(old) do
    object[key] = value
  end
  object.metadata = host.json.copy(old.metadata)
  object.metadata.managedFields = managers
  object.status = new_status
end


-- Anything but metadata: without a status of its own, a kind's status counts as well.
local function any_change(object, old)
  local meta, old_meta = object.metadata, old.metadata
  object.metadata, old.metadata = nil, nil
  local same = host.json.equal(object, old)
  object.metadata, old.metadata = meta, old_meta
  return not same
end


-- Functions that find the values of selectable fields, by the fields' names ("spec.color").
local function finders(versions)
  local by_name, count = {}, 0
  for _, version in ipairs(versions) do
    for _, selectable in ipairs(version.selectableFields or {}) do
      by_name[selectable.jsonPath:sub(2)] = jsonpath.compile(selectable.jsonPath)
      count = count + 1
    end
  end
  return count > 0 and by_name or nil
end


local function names_of(version)
  local names = {}
  for _, selectable in ipairs(version.selectableFields or {}) do
    names[selectable.jsonPath:sub(2)] = true
  end
  return names
end


-- All versions share what is stored, so each write notes what selectors of any of them may ask.
local function fields_of(versions)
  local by_name = finders(versions)
  return by_name and function(object)
    local fields = {}
    for name, find in pairs(by_name) do
      local value = find(object)
      fields[name] = (value == nil or value == null) and "" or gofmt.plain(value)
    end
    return fields
  end
end


--- The strategy for objects of one version of a CRD.
--- @param version table an element of spec.versions  @param crd table
function M.of(version, crd)
  local subresources = version.subresources or {}
  local schema, scale = version.schema.openAPIV3Schema, subresources.scale
  local create, update = preparers(subresources.status ~= nil, crd.metadata.deletionTimestamp ~= nil)
  local with_rules, spec_changed = rules.with_rules(schema), nil
  if not subresources.status then
    spec_changed = any_change
  end
  return {
    prepare_create = create, prepare_update = update, prepare_status = prepare_status,
    complete = subresources.status and completer(schema) or nil,
    validate = with_rules(validator(schema, scale)),
    validate_update = with_rules(update_validator(schema, scale)),
    validate_status = with_rules(status_validator(schema, scale)),
    spec_changed = spec_changed,
    fields = fields_of(crd.spec.versions), field_names = names_of(version),
  }
end


return M
