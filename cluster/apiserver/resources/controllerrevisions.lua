--- Revisions of controllers' data, such as the templates of a StatefulSet.
---
--- Rules: kubernetes/pkg/apis/apps/validation/validation.go, pkg/registry/apps/controllerrevision/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"


local function validate(object)
  local errors, data = {}, object.data
  check.not_negative(object.revision, "revision", errors)
  if data == nil or data == host.json.null then
    errors[#errors + 1] = field.required("data", "data is mandatory")
  elseif type(data) ~= "table" or host.json.is_array(data) then
    errors[#errors + 1] = field.required("data", "data must be a valid JSON object")
  end
  return errors
end


local function validate_update(new, old)
  local errors = {}
  check.not_negative(new.revision, "revision", errors)
  check.immutable_value(new.data, old.data, "data", errors)
  return errors
end


-- "deployment.apps/web" of the owner that controls, or "<none>".
local function controller_of(obj)
  for _, owner in ipairs(obj.metadata.ownerReferences or {}) do
    if owner.controller == true then
      local group = owner.apiVersion:match("^(.*)/")
      return (owner.kind .. (group and "." .. group or "")):lower() .. "/" .. owner.name
    end
  end
  return "<none>"
end


local function cells(obj, now)
  return { obj.metadata.name, controller_of(obj), obj.revision, age.of(obj, now) }
end


return {
  spec_changed = false, validate = validate, validate_update = validate_update,
  cells = cells,
}
