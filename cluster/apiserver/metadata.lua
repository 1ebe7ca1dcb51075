--- The rules for metadata that every kind shares.
---
--- Rules: apimachinery/pkg/api/validation/objectmeta.go, apimachinery/pkg/apis/meta/v1/validation/validation.go.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local names = require "cluster.names"
local owner_references = require "cluster.apiserver.owner_references"

local M = {}

-- Keys and values of all annotations together, in bytes.
local ANNOTATIONS_MAX = 256 * 1024
local MANAGER_MAX = 128
local NULL = host.json.null
local NONE = {}
local IMMUTABLE = "field is immutable"
local ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
local STANDARD_FINALIZERS = { kubernetes = true, [ORPHAN] = true, [FOREGROUND] = true }


local function invalid_each(errors, path, value, messages)
  for _, message in ipairs(messages or NONE) do
    errors[#errors + 1] = field.invalid(path, value, message)
  end
end


-- True if all labels are valid. This common case needs no sorting.
local function are_good_labels(labels)
  for key, value in next, labels do
    if names.qualified(key) or names.label_value(value) then
      return false
    end
  end
  return true
end


--- Checks labels: `errors` gets their errors, under `path`.
function M.check_labels(labels, path, errors)
  if not labels or are_good_labels(labels) then
    return
  end
  for _, key in ipairs(gofmt.sorted_keys(labels)) do
    invalid_each(errors, path, key, names.qualified(key))
    invalid_each(errors, path, labels[key], names.label_value(labels[key]))
  end
end


local function are_good_annotations(annotations)
  local size = 0
  for key, value in next, annotations do
    size = size + #key + #value
    if names.qualified(key:lower()) then
      return false
    end
  end
  return size <= ANNOTATIONS_MAX
end


local function check_annotations(annotations, path, errors)
  if not annotations or are_good_annotations(annotations) then
    return
  end
  local size = 0
  for _, key in ipairs(gofmt.sorted_keys(annotations)) do
    invalid_each(errors, path, key, names.qualified(key:lower()))
    size = size + #key + #annotations[key]
  end
  if size > ANNOTATIONS_MAX then
    errors[#errors + 1] = field.too_long(path, "", ANNOTATIONS_MAX)
  end
end


-- The further rule of built-in kinds.
local function check_kube_finalizers(finalizers, errors)
  for i, finalizer in ipairs(finalizers or NONE) do
    if not finalizer:find("/", 1, true) and not STANDARD_FINALIZERS[finalizer] then
      errors[#errors + 1] = field.invalid(("metadata.finalizers[%d]"):format(i - 1), finalizer,
        "name is neither a standard finalizer name nor is it fully qualified")
    end
  end
end


local function check_finalizers(finalizers, errors)
  local path, found = "metadata.finalizers", {}
  for _, finalizer in ipairs(finalizers or NONE) do
    invalid_each(errors, path, finalizer, names.qualified(finalizer))
    found[finalizer] = true
  end
  if found[ORPHAN] and found[FOREGROUND] then
    errors[#errors + 1] = field.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")
  end
end


-- Code points that Go's unicode.IsPrint refuses, as far as a name meets them: controls, separators but the space,
-- the private areas and what is no character.
local function unprintable(code)
  return code < 0x20 or (code >= 0x7f and code <= 0xa0) or code == 0xad or (code >= 0x2000 and code <= 0x200f)
    or (code >= 0x2028 and code <= 0x202f) or (code >= 0x205f and code <= 0x206f) or code == 0x3000
    or (code >= 0xe000 and code <= 0xf8ff) or code == 0xfeff or code >= 0xf0000
end


--- The name of a field manager.
function M.check_manager(manager, path, errors)
  if #manager > MANAGER_MAX then
    errors[#errors + 1] = field.too_long(path, "", MANAGER_MAX)
  end
  if not manager:find("[^ -~]") or not utf8.len(manager) then
    return
  end
  for position, code in utf8.codes(manager) do
    if unprintable(code) then
      errors[#errors + 1] = field.invalid(path, manager,
        ("invalid character U+%04X (at position %d)"):format(code, position - 1))
    end
  end
end


local function check_managed_fields(entries, errors)
  for i, entry in ipairs(entries or NONE) do
    local path = ("metadata.managedFields[%d]"):format(i - 1)
    if entry.operation ~= "Apply" and entry.operation ~= "Update" then
      errors[#errors + 1] = field.invalid(path .. ".operation", entry.operation or "", "must be `Apply` or `Update`")
    end
    if (entry.fieldsType or "FieldsV1") ~= "FieldsV1" then
      errors[#errors + 1] = field.invalid(path .. ".fieldsType", entry.fieldsType, "must be `FieldsV1`")
    end
    M.check_manager(entry.manager or "", path .. ".manager", errors)
    if #(entry.subresource or "") > 256 then
      errors[#errors + 1] = field.too_long(path .. ".subresource", "", 256)
    end
  end
end


local function check_name(meta, check, errors)
  if meta.generateName and meta.generateName ~= "" then
    invalid_each(errors, "metadata.generateName", meta.generateName, check(meta.generateName, true))
  end
  if (meta.name or "") == "" then
    errors[#errors + 1] = field.required("metadata.name", "name or generateName is required")
  else
    invalid_each(errors, "metadata.name", meta.name, check(meta.name, false))
  end
end


local function check_namespace(meta, res, errors)
  local namespace = meta.namespace or ""
  if not res.namespaced then
    if namespace ~= "" then
      errors[#errors + 1] = field.forbidden("metadata.namespace", "not allowed on this type")
    end
  elseif namespace == "" then
    errors[#errors + 1] = field.required("metadata.namespace", "")
  else
    invalid_each(errors, "metadata.namespace", namespace, names.name_is_label(namespace))
  end
end


-- Fields that are left out if they say nothing: empty, null, and 0 for a generation. An empty list of managers stays:
-- it asks to forget all managers.
local DROPPED = {
  name = true, generateName = true, namespace = true, uid = true, resourceVersion = true, selfLink = true,
  creationTimestamp = true, deletionTimestamp = true, labels = true, annotations = true, ownerReferences = true,
  finalizers = true, managedFields = true, generation = true, deletionGracePeriodSeconds = true,
}


local function says_nothing(key, value)
  if value == "" or value == NULL then
    return true
  elseif type(value) == "table" then
    return next(value) == nil and key ~= "managedFields"
  end
  return value == 0 and key == "generation"
end


--- Leaves out of an object's metadata what says nothing, as a decoder with a type for it would. Makes `metadata` when
--- there is none.
function M.normalize(object)
  local meta = object.metadata
  if type(meta) ~= "table" then
    object.metadata = {}
    return
  end
  for key, value in next, meta do
    if DROPPED[key] and says_nothing(key, value) then
      meta[key] = nil
    end
  end
end


--- Validates `meta`, the metadata of a new object of kind `res`. `check` is the rule for names, see
--- names.name_check. Returns a list of field errors, in the server's order; empty when all is well.
function M.validate(meta, res, check)
  local errors = {}
  check_name(meta, check, errors)
  check_namespace(meta, res, errors)
  if (meta.generation or 0) < 0 then
    errors[#errors + 1] = field.invalid("metadata.generation", meta.generation, "must be greater than or equal to 0")
  end
  M.check_labels(meta.labels, "metadata.labels", errors)
  check_annotations(meta.annotations, "metadata.annotations", errors)
  owner_references.check(meta.ownerReferences, errors)
  check_finalizers(meta.finalizers, errors)
  check_managed_fields(meta.managedFields, errors)
  if res.builtin and res.group ~= "apiextensions.k8s.io" then
    check_kube_finalizers(meta.finalizers, errors)
  end
  return errors
end


-- All but labels and annotations, in the order of Go's type; and what it calls them.
local NOT_IN_TEMPLATES = {
  "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
  "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields",
}
local TOLD_AS = { uid = "uID" }


--- Metadata that may have labels and annotations only: of a template, or what a conversion webhook says of it.
function M.check_template(meta, path, errors)
  check_annotations(meta.annotations, path .. ".annotations", errors)
  M.check_labels(meta.labels, path .. ".labels", errors)
  for _, name in ipairs(NOT_IN_TEMPLATES) do
    if meta[name] ~= nil and meta[name] ~= NULL then
      errors[#errors + 1] = field.forbidden(path .. "." .. (TOLD_AS[name] or name), "cannot be set")
    end
  end
end


local function check_no_new_finalizers(new, old, errors)
  local had, extra = {}, {}
  for _, finalizer in ipairs(old.finalizers or {}) do
    had[finalizer] = true
  end
  for _, finalizer in ipairs(new.finalizers or {}) do
    if not had[finalizer] then
      extra[#extra + 1] = field.quote(finalizer)
    end
  end
  if #extra > 0 then
    table.sort(extra)
    errors[#errors + 1] = field.forbidden("metadata.finalizers", "no new finalizers can be added if the object is "
      .. "being deleted, found new finalizers []string{" .. table.concat(extra, ", ") .. "}")
  end
end


--- A write of a part of an object (its status, say) changes none of the metadata that others own.
function M.keep(new, old)
  for _, name in ipairs { "labels", "annotations", "finalizers", "ownerReferences" } do
    new[name] = old[name]
  end
end


--- Validates `new` as the metadata that follows `old`. Returns a list of field errors.
function M.validate_update(new, old)
  local errors = {}
  if old.deletionTimestamp then
    check_no_new_finalizers(new, old, errors)
  end
  if (new.resourceVersion or "") == "" then
    errors[#errors + 1] = field.invalid("metadata.resourceVersion", "", "must be specified for an update")
  end
  if (new.generation or 0) < (old.generation or 0) then
    errors[#errors + 1] = field.invalid("metadata.generation", new.generation or 0, "must not be decremented")
  end
  for _, key in ipairs { "name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds" } do
    if new[key] ~= old[key] then
      local value = new[key] == nil and NULL or new[key]
      errors[#errors + 1] = field.invalid("metadata." .. key, value, IMMUTABLE)
    end
  end
  M.check_labels(new.labels, "metadata.labels", errors)
  check_annotations(new.annotations, "metadata.annotations", errors)
  owner_references.check(new.ownerReferences, errors)
  check_managed_fields(new.managedFields, errors)
  return errors
end


return M
