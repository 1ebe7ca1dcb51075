--- Namespaces.
---
--- Rules: kubernetes/pkg/registry/core/namespace/strategy.go, pkg/apis/core/v1/defaults.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"

local FINALIZER = "kubernetes"
local STANDARD = { kubernetes = true, orphan = true, foregroundDeletion = true }
local NAME_LABEL = "kubernetes.io/metadata.name"


-- Every namespace can be selected by its name.
local function defaults(object)
  local meta = object.metadata
  if meta.name then
    meta.labels = meta.labels or {}
    meta.labels[NAME_LABEL] = meta.name
  end
end


local function prepare_create(object)
  object.status = { phase = "Active" }
  local finalizers = object.spec.finalizers or host.json.array {}
  for _, finalizer in ipairs(finalizers) do
    if finalizer == FINALIZER then
      return
    end
  end
  finalizers[#finalizers + 1] = FINALIZER
  object.spec.finalizers = finalizers
  if not object.metadata.labels then
    object.metadata.labels = { [NAME_LABEL] = object.metadata.name }
  end
end


local function validate(object)
  local errors, path = {}, "spec.finalizers"
  for _, finalizer in ipairs(object.spec.finalizers or {}) do
    check.each(errors, path, finalizer, names.qualified(finalizer))
    if not finalizer:find("/", 1, true) and not STANDARD[finalizer] then
      errors[#errors + 1] = field.invalid(path, finalizer,
        "name is neither a standard finalizer name nor is it fully qualified")
    end
  end
  return errors
end


local function validate_status(new)
  local errors, phase = {}, new.status.phase or ""
  local expected = new.metadata.deletionTimestamp and "Terminating" or "Active"
  if phase ~= expected then
    errors[#errors + 1] = field.invalid("status.Phase", phase, ("may only be '%s' if `deletionTimestamp` is %sempty")
      :format(expected, expected == "Active" and "" or "not "))
  end
  return errors
end


local function prepare_update(new, old)
  new.spec.finalizers = old.spec.finalizers
  new.status = old.status
end


local function prepare_status(new, old)
  new.spec = old.spec
end


local function may_go(object)
  local finalizers = object.spec.finalizers
  return not finalizers or #finalizers == 0
end


local function cells(obj, now)
  return { obj.metadata.name, obj.status and obj.status.phase or "", age.of(obj, now) }
end


return {
  name = names.name_is_label,
  spec_changed = false,
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = prepare_update,
  prepare_status = prepare_status,
  validate = validate,
  validate_status = validate_status,
  may_go = may_go,
  mark_deleted = function(object)
    object.status.phase = "Terminating"
  end,
  field_names = { ["status.phase"] = true, name = true },
  fields = function(object)
    return { ["status.phase"] = object.status and object.status.phase or "", name = object.metadata.name }
  end,
  cells = cells,
}
