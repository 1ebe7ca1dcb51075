--- RuntimeClasses; pod/classes.lua reads them. The handler has no effect: pods are processes.
---
--- Rules: kubernetes/pkg/apis/node/validation/validation.go, pkg/registry/node/runtimeclass/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"
local quantity = require "cluster.quantity"
local resource_requirements = require "cluster.apiserver.resources.pod.resource_requirements"
local pod_scheduling = require "cluster.apiserver.resources.pod.scheduling"


local function defaults(object)
  local fixed = object.overhead and object.overhead.podFixed
  for name, text in pairs(fixed or {}) do
    fixed[name] = quantity.milli(text)
  end
end


-- A toleration as its internal type in Go is printed.
local function toleration_text(toleration)
  return check.go_struct {
    { "Key", toleration.key or "" }, { "Operator", toleration.operator or "" }, { "Value", toleration.value or "" },
    { "Effect", toleration.effect or "" }, { "TolerationSeconds", toleration.tolerationSeconds },
  }
end


-- No toleration twice, whatever its seconds.
local function check_unique(tolerations, errors)
  local seen = {}
  for i, toleration in ipairs(tolerations) do
    local key = table.concat({ toleration.key or "", toleration.operator or "", toleration.value or "",
      toleration.effect or "" }, "\0")
    if seen[key] then
      errors[#errors + 1] = {
        type = "FieldValueDuplicate", path = ("scheduling.tolerations[%d]"):format(i - 1),
        detail = toleration_text(toleration),
      }
    end
    seen[key] = true
  end
end


local function validate(object)
  local errors, scheduling = {}, object.scheduling
  if object.handler == "" then
    errors[#errors + 1] = field.required("handler", "")
  else
    check.each(errors, "handler", object.handler, names.label(object.handler))
  end
  if object.overhead then
    resource_requirements.validate({ limits = object.overhead.podFixed }, "overhead", errors)
  end
  if scheduling then
    metadata.check_labels(scheduling.nodeSelector, "scheduling.nodeSelector", errors)
    pod_scheduling.tolerations(scheduling.tolerations or {}, "scheduling.tolerations", errors)
    check_unique(scheduling.tolerations or {}, errors)
  end
  return errors
end


local function validate_update(new, old)
  local errors = validate(new)
  check.immutable_value(new.handler, old.handler, "handler", errors)
  return errors
end


return {
  spec_changed = false,
  unconditional_update = false,
  defaults = defaults,
  validate = validate,
  validate_update = validate_update,
  cells = function(obj, now)
    return { obj.metadata.name, obj.handler, age.of(obj, now) }
  end,
}
