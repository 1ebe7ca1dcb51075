--- VolumeAttachments.
---
--- Rules: kubernetes/pkg/apis/storage/validation/validation.go (ValidateVolumeAttachment),
--- pkg/registry/storage/volumeattachment/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local claim = require "cluster.apiserver.resources.claim"
local common = require "cluster.apiserver.resources.storage.common"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"

local METADATA_MAX, MESSAGE_MAX = 262144, 1024
local ONE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
local INLINE = "may not be specified in the context of inline volumes"


local function check_inline(spec, path, errors)
  for _, name in ipairs { "claimRef", "capacity" } do
    if spec[name] then
      errors[#errors + 1] = field.forbidden(path .. "." .. name, INLINE)
    end
  end
  if not spec.csi then
    errors[#errors + 1] = field.required(path .. ".csi", "has to be specified in the context of inline volumes")
  end
  if #(spec.accessModes or {}) == 0 then
    errors[#errors + 1] = field.required(path .. ".accessModes", "")
  end
  claim.check_modes(spec.accessModes or {}, path .. ".accessModes", errors)
  if spec.persistentVolumeReclaimPolicy and spec.persistentVolumeReclaimPolicy ~= "Retain" then
    errors[#errors + 1] = field.forbidden(path .. ".persistentVolumeReclaimPolicy",
      "may only be Retain in the context of inline volumes")
  end
  if spec.csi then
    common.check_driver(spec.csi.driver, path .. ".csi.driver", errors)
    if spec.csi.volumeHandle == "" then
      errors[#errors + 1] = field.required(path .. ".csi.volumeHandle", "")
    end
  end
end


local function check_source(source, path, errors)
  local name, inline = source.persistentVolumeName, source.inlineVolumeSpec
  if not name and not inline then
    errors[#errors + 1] = field.required(path, ONE)
  elseif name and inline then
    errors[#errors + 1] = field.forbidden(path, ONE)
  elseif name == "" then
    errors[#errors + 1] = field.required(path .. ".persistentVolumeName", "must specify non empty persistentVolumeName")
  elseif inline then
    check_inline(inline, path .. ".inlineVolumeSpec", errors)
  end
end


local function check_error(value, path, errors)
  if value and #(value.message or "") > MESSAGE_MAX then
    errors[#errors + 1] = field.too_long(path .. ".message", "", METADATA_MAX)
  end
  if value and (value.errorCode or 0) < 0 then
    errors[#errors + 1] = field.invalid(path .. ".errorCode", value.errorCode,
      "must be between 0 and 2147483647, inclusive")
  end
end


local function validate(object)
  local errors, spec, status = {}, object.spec, object.status
  common.check_driver(spec.attacher, "spec.attacher", errors)
  check_source(spec.source, "spec.source", errors)
  check.each(errors, "spec.nodeName", spec.nodeName, names.subdomain(spec.nodeName))
  if common.size_of(status.attachmentMetadata) > METADATA_MAX then
    errors[#errors + 1] = field.too_long("status.attachmentMetadata", "", METADATA_MAX)
  end
  check_error(status.attachError, "status.attachError", errors)
  check_error(status.detachError, "status.detachError", errors)
  local name = spec.source.persistentVolumeName
  if name then
    check.each(errors, "spec.source.persistentVolumeName", name, names.subdomain(name))
  end
  return errors
end


-- A spec as its internal type in Go is printed; a volume within it, which has hundreds of members, is left out.
local function spec_text(spec)
  local source = check.go_struct {
    { "PersistentVolumeName", spec.source.persistentVolumeName }, { "InlineVolumeSpec" },
  }
  return check.go_struct { { "Attacher", spec.attacher }, { "Source", source, true }, { "NodeName", spec.nodeName } }
end


local function validate_update(new, old)
  local errors = validate(new)
  if not host.json.equal(new.spec, old.spec) then
    errors[#errors + 1] = check.invalid_text("spec", spec_text(new.spec), "field is immutable")
  end
  return errors
end


-- A write of the status changes neither the spec nor the metadata that others own.
local function prepare_status(new, old)
  new.spec = old.spec
  new.metadata.deletionTimestamp = old.metadata.deletionTimestamp
  metadata.keep(new.metadata, old.metadata)
end


local function cells(obj, now)
  local spec, status = obj.spec, obj.status or {}
  return {
    obj.metadata.name, spec.attacher, spec.source.persistentVolumeName or "", spec.nodeName, status.attached or false,
    age.of(obj, now),
  }
end


return {
  returns_deleted = true,
  spec_changed = false,
  unconditional_update = false,
  prepare_create = function(object)
    object.status = { attached = false }
  end,
  prepare_update = function(new, old)
    new.status = old.status
  end,
  prepare_status = prepare_status,
  validate = validate, validate_update = validate_update, validate_status = validate_update,
  cells = cells,
}
