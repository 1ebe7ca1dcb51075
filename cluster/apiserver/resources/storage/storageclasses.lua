--- StorageClasses. Claims get a folder, whatever their class says.
---
--- Rules: kubernetes/pkg/apis/storage/validation/validation.go (ValidateStorageClass), pkg/apis/storage/v1/defaults.go,
--- pkg/registry/storage/storageclass/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local common = require "cluster.apiserver.resources.storage.common"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"

local DEFAULT_MARKS = { "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class" }
local IMMUTABLE = { "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode" }


local function defaults(object)
  object.reclaimPolicy = object.reclaimPolicy or "Delete"
  object.volumeBindingMode = object.volumeBindingMode or "Immediate"
end


-- @return table key → set of values
local function check_term(term, path, errors)
  local keys = {}
  for i, expression in ipairs(term.matchLabelExpressions or {}) do
    local at, set = ("%s.matchLabelExpressions[%d]"):format(path, i - 1), {}
    local values = check.list(expression.values)
    if #values == 0 then
      errors[#errors + 1] = field.required(at .. ".values", "")
    end
    for j, value in ipairs(values) do
      if set[value] then
        errors[#errors + 1] = field.duplicate(("%s.values[%d]"):format(at, j - 1), value)
      end
      set[value] = true
    end
    check.each(errors, at .. ".key", expression.key, names.qualified(expression.key))
    if keys[expression.key] then
      errors[#errors + 1] = field.duplicate(at .. ".key", expression.key)
    end
    keys[expression.key] = set
  end
  return keys
end


local function check_topologies(topologies, errors)
  local seen = {}
  for i, term in ipairs(topologies or {}) do
    local path = ("allowedTopologies[%d]"):format(i - 1)
    local keys = check_term(term, path, errors)
    for _, other in ipairs(seen) do
      if host.json.equal(keys, other) then
        errors[#errors + 1] = field.duplicate(path .. ".matchLabelExpressions", "")
      end
    end
    seen[#seen + 1] = keys
  end
end


local function validate(object)
  local errors = {}
  common.check_provisioner(object.provisioner, "provisioner", errors)
  common.check_parameters(object.parameters, true, errors)
  if object.reclaimPolicy ~= "" then
    check.choice(object.reclaimPolicy, { "Delete", "Retain" }, "reclaimPolicy", errors)
  end
  check.choice(object.volumeBindingMode, { "Immediate", "WaitForFirstConsumer" }, "volumeBindingMode", errors)
  check_topologies(object.allowedTopologies, errors)
  return errors
end


local function validate_update(new, old)
  local errors = validate(new)
  for _, name in ipairs(IMMUTABLE) do
    check.immutable_value(new[name], old[name], name, errors)
  end
  return errors
end


local function is_default(object)
  for _, mark in ipairs(DEFAULT_MARKS) do
    if (object.metadata.annotations or {})[mark] == "true" then
      return true
    end
  end
  return false
end


local function cells(obj, now)
  return {
    obj.metadata.name .. (is_default(obj) and " (default)" or ""), obj.provisioner, obj.reclaimPolicy or "Delete",
    obj.volumeBindingMode or "Immediate", obj.allowVolumeExpansion or false, age.of(obj, now),
  }
end


return {
  spec_changed = false,
  defaults = defaults,
  validate = validate, validate_update = validate_update,
  cells = cells,
}
