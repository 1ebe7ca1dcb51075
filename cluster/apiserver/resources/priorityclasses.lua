--- PriorityClasses; pod/priority.lua reads them.
---
--- Rules: kubernetes/pkg/apis/scheduling/validation/validation.go, pkg/apis/scheduling/v1/{defaults,helpers}.go,
--- pkg/registry/scheduling/priorityclass/strategy.go, plugin/pkg/admission/priority/admission.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local classes = require "cluster.apiserver.resources.default_class"
local field = require "cluster.apiserver.field"
local status = require "cluster.apiserver.status"

local USER_MAX = 1000000000
-- The classes that every cluster has.
local SYSTEM = { ["system-cluster-critical"] = 2000000000, ["system-node-critical"] = 2000001000 }
local POLICIES = { "PreemptLowerPriority", "Never" }


local function defaults(object)
  object.preemptionPolicy = object.preemptionPolicy or "PreemptLowerPriority"
end


-- Why a class whose name begins as those of the system do is none of them, or nil.
local function stranger(object)
  local name = object.metadata.name
  if not SYSTEM[name] then
    return name .. " is not a known system priority class"
  elseif object.value ~= SYSTEM[name] then
    return ("value of %s PriorityClass must be %d"):format(name, SYSTEM[name])
  elseif object.globalDefault then
    return ("globalDefault of %s PriorityClass must be false"):format(name)
  end
end


local function validate(object)
  local errors = {}
  if (object.metadata.name or ""):find("^system%-") then
    local why = stranger(object)
    if why then
      errors[#errors + 1] = field.forbidden("metadata.name",
        "priority class names with 'system-' prefix are reserved for system use only. error: " .. why)
    end
  elseif object.value > USER_MAX then
    errors[#errors + 1] = field.forbidden("value",
      ("maximum allowed value of a user defined priority is %d"):format(USER_MAX))
  end
  if object.preemptionPolicy == "" then
    errors[#errors + 1] = field.required("preemptionPolicy", "")
  else
    check.choice(object.preemptionPolicy, POLICIES, "preemptionPolicy", errors)
  end
  return errors
end


local function validate_update(new, old)
  local errors = {}
  if new.value ~= old.value then
    errors[#errors + 1] = field.forbidden("value", "may not be changed in an update.")
  end
  check.immutable_value(new.preemptionPolicy, old.preemptionPolicy, "preemptionPolicy", errors)
  return errors
end


-- Only one class can be the default.
local function admit(object, old, ctx)
  if not object.globalDefault then
    return nil
  end
  for _, class in ipairs(classes.all(ctx, "priorityclasses.scheduling.k8s.io")) do
    if class.globalDefault and not (old and class.metadata.name == object.metadata.name) then
      return status.forbidden(ctx.request.res, object.metadata.name,
        ("PriorityClass %s is already marked as default. Only one default can exist"):format(class.metadata.name))
    end
  end
end


-- The generation of a class is that of its creation.
local function never()
  return false
end


local function cells(obj, now)
  return {
    obj.metadata.name, obj.value, obj.globalDefault or false, age.of(obj, now), obj.preemptionPolicy or "",
  }
end


return {
  spec_changed = never,
  defaults = defaults,
  validate = validate,
  validate_update = validate_update,
  admit = admit,
  cells = cells,
}
