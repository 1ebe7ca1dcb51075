--- Validates a CRD when it is created, and when it changes.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
local approval = require "cluster.apiserver.crd.approval"
local conditions = require "cluster.apiserver.crd.conditions"
local field = require "cluster.apiserver.field"
local formats = require "cluster.apiserver.schema.formats"
local host = require "cluster.host"
local names = require "cluster.names"
local respond = require "cluster.apiserver.respond"
local spec_rules = require "cluster.apiserver.crd.spec"
local structural = require "cluster.apiserver.schema.structural"

local M = {}


local function check_stored_versions(crd, errors)
  local stored, path = crd.status.storedVersions, "status.storedVersions"
  if type(stored) ~= "table" or #stored == 0 then
    errors[#errors + 1] = field.invalid(path, host.json.null, "must have at least one stored version")
    return
  end
  local unlisted = {}
  for i, name in ipairs(stored) do
    unlisted[name] = i - 1
  end
  for _, version in ipairs(crd.spec.versions or {}) do
    if version.storage and not unlisted[version.name] then
      errors[#errors + 1] = field.invalid(path, stored, "must have the storage version " .. version.name)
    end
    unlisted[version.name] = nil
  end
  for _, name in ipairs(stored) do
    if unlisted[name] then
      errors[#errors + 1] = field.invalid(("%s[%d]"):format(path, unlisted[name]), name,
        ("missing from spec.versions; %s was previously a storage version, and must remain in spec.versions until a "
        .. "storage migration ensures no data remains persisted in %s and removes %s from status.storedVersions")
        :format(name, name, name))
    end
  end
end


local function check_approval(crd, old, errors)
  if not approval.is_needed(crd.spec.group or "") then
    return
  end
  local state, message = approval.of(crd)
  local path = "metadata.annotations[" .. approval.ANNOTATION .. "]"
  if old and approval.of(old) == state then
    return
  elseif state == "missing" then
    errors[#errors + 1] = field.required(path, message)
  elseif state == "invalid" then
    errors[#errors + 1] = field.invalid(path, crd.metadata.annotations[approval.ANNOTATION], message)
  end
end


local function check_preserve(crd, old, errors)
  if crd.spec.preserveUnknownFields == true and not (old and old.spec.preserveUnknownFields == true) then
    errors[#errors + 1] = field.invalid("spec.preserveUnknownFields", true, "cannot set to true, set "
      .. "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead")
  end
end


-- The name says what the CRD is about.
local function check_name(crd, errors)
  local spec, name = crd.spec, crd.metadata.name or ""
  if name ~= "" and name ~= (spec.names.plural or "") .. "." .. (spec.group or "") then
    table.insert(errors, 1, field.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
  end
end


local function check(crd, old)
  local errors = spec_rules.check(crd.spec, old and old.spec)
  if old then
    M.check_immutable(crd, old, errors)
  end
  spec_rules.names(crd.status.acceptedNames, "status.acceptedNames", errors)
  check_stored_versions(crd, errors)
  check_approval(crd, old, errors)
  check_preserve(crd, old, errors)
  return errors
end


--- Checks that group and plural name do not change, nor kind and scope once the CRD is established.
function M.check_immutable(crd, old, errors)
  local function same(value, before, path)
    if value ~= before then
      errors[#errors + 1] = field.invalid(path, value or "", "field is immutable")
    end
  end
  local spec, before = crd.spec, old.spec
  if conditions.is_true(old, "Established") then
    same(spec.scope, before.scope, "spec.scope")
    same(spec.names.kind, before.names.kind, "spec.names.kind")
  end
  same(spec.group, before.group, "spec.group")
  same(spec.names.plural, before.names.plural, "spec.names.plural")
end


--- The rule for names of CRDs; that they fit their spec is checked with it.
M.name = names.name_is_subdomain


--- Checks a new CRD. @return table list of field errors
function M.create(crd)
  local errors = check(crd, nil)
  check_name(crd, errors)
  return errors
end


--- Checks `crd`, which replaces `old`. @return table list of field errors
function M.update(crd, old)
  return check(crd, old)
end


--- Checks a new status. @return table list of field errors
function M.status(crd)
  local errors = {}
  spec_rules.names(crd.status.acceptedNames or {}, "status.acceptedNames", errors)
  return errors
end


local NUMBER_FORMATS = {
  integer = { int32 = true, int64 = true }, number = { float = true, double = true },
}


local function is_known(format, kind)
  if kind == nil or kind == "" or kind == "string" then
    return formats.test(format) ~= nil
  end
  return NUMBER_FORMATS[kind] ~= nil and NUMBER_FORMATS[kind][format] == true
end


local function collect_formats(schema, list)
  local format = schema.format
  if format and format ~= "" and not is_known(format, schema.type) then
    list[#list + 1] = format
  end
  structural.each_part(schema, nil, function(inner)
    collect_formats(inner, list)
  end)
end


local function unknown_formats(crd)
  local list = {}
  for _, version in ipairs(crd.spec.versions or {}) do
    local schema = version.schema and version.schema.openAPIV3Schema
    if schema then
      collect_formats(schema, list)
    end
  end
  return list
end


--- Warns of formats that nobody knows, but for those that `old` had.
function M.warn_of_formats(crd, old, request)
  local had = {}
  for _, format in ipairs(old and unknown_formats(old) or {}) do
    had[format] = true
  end
  for _, format in ipairs(unknown_formats(crd)) do
    if not had[format] then
      respond.warn(request, "unrecognized format " .. field.quote(format))
    end
  end
end


return M
