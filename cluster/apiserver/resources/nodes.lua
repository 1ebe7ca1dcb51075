--- Nodes. No controller handles their lifecycle, so new nodes do not get the taint `not-ready`.
---
--- Rules: kubernetes/pkg/registry/core/node/strategy.go, pkg/apis/core/validation/validation.go (ValidateNode).
local cells = require "cluster.apiserver.tables.cells.node"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local location = require "cluster.apiserver.proxy.location"
local names = require "cluster.names"
local proxy = require "cluster.apiserver.proxy"
local workload = require "cluster.apiserver.resources.workload"

local EFFECTS = { "NoSchedule", "PreferNoSchedule", "NoExecute" }


local function defaults(object)
  local status = object.status
  status.allocatable = status.allocatable or status.capacity
end


local function validate(object)
  local errors, seen = {}, {}
  for i, taint in ipairs(object.spec.taints or {}) do
    local path = ("metadata.taints[%d]"):format(i - 1)
    check.each(errors, path .. ".key", taint.key, names.qualified(taint.key))
    check.each(errors, path .. ".value", taint.value or "", names.label_value(taint.value or ""))
    check.choice(taint.effect, EFFECTS, path .. ".effect", errors)
    local pair = taint.key .. ":" .. taint.effect
    if seen[pair] then
      local taint_text = check.go_struct { { "Key", taint.key }, { "Value", taint.value or "" },
        { "Effect", taint.effect }, { "TimeAdded", taint.timeAdded } }
      errors[#errors + 1] = { type = "FieldValueDuplicate", path = path,
        detail = taint_text .. ": taints must be unique by key and effect pair" }
    end
    seen[pair] = true
  end
  return errors
end


local function validate_update(new, old)
  local errors = validate(new)
  if old.spec.providerID and old.spec.providerID ~= new.spec.providerID then
    errors[#errors + 1] = field.forbidden("spec.providerID",
      'node updates may not change providerID except from "" to valid')
  end
  return errors
end


return {
  spec_changed = false,
  defaults = defaults,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  validate = validate, validate_update = validate_update,
  field_names = { ["spec.unschedulable"] = true },
  fields = function(object)
    return { ["spec.unschedulable"] = tostring(object.spec.unschedulable or false) }
  end,
  subresources = { proxy = proxy.part("NodeProxyOptions", location.of_node) },
  cells = cells,
}
