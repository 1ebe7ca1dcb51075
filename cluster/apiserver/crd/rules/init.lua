--- The rules of custom kinds (`x-kubernetes-validations`), when their objects are written.
---
--- Rules and wordings: apiextensions-apiserver/pkg/registry/customresource/strategy.go.
local correlation = require "cluster.apiserver.crd.rules.correlation"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local respond = require "cluster.apiserver.respond"
local validator = require "cluster.apiserver.crd.rules.validator"

local M = {}

-- Errors of a value that rules cannot cope with.
local BLOCKING = {
  FieldValueNotSupported = true, FieldValueRequired = true, FieldValueTooLong = true, FieldValueTooMany = true,
  FieldValueTypeInvalid = true,
}
local NOT_CHECKED = "some validation rules were not checked because the object was invalid; correct the existing "
  .. "errors to complete validation"


local function any_blocking(errors)
  for _, err in ipairs(errors or {}) do
    if BLOCKING[err.type] then
      return true
    end
  end
  return false
end


-- The validator of a schema, compiled when the first object is validated; false without rules.
local function lazy(schema)
  local validate
  return function()
    if validate == nil then
      validate = validator.compile(schema, true) or false
    end
    return validate
  end
end


local function warn(request, warnings)
  for _, err in ipairs(warnings) do
    respond.warn(request, err.path .. ": " .. field.body(err))
  end
end


--- Makes checks look at the rules of a schema as well.
--- @param schema table structural, of whole objects
--- @return function (check) -> check. The one that is given: (object, old) -> list of field errors. The one that is
---   made: (object, old, request, before) -> the same list; `old` is the object that is replaced, or nil, `before` a
---   list of what others found wrong
function M.with_rules(schema)
  local validator_of_schema = lazy(schema)
  return function(check)
    return function(object, old, request, before)
      local errors, validate = check(object, old), validator_of_schema()
      if not validate then
        return errors
      elseif any_blocking(before) or any_blocking(errors) then
        errors[#errors + 1] = field.invalid("<nil>", host.json.null, NOT_CHECKED)
        return errors
      end
      local found, warnings = validate(object, { old = old, way = correlation.root(object, old, schema) })
      table.move(found, 1, #found, #errors + 1, errors)
      warn(request, warnings)
      return errors
    end
  end
end


return M
