--- Selectors of devices: expressions in CEL over `device`. They are compiled and their cost is estimated; nothing here
--- allocates devices, so none is ever run.
---
--- Rules and wordings: dynamic-resource-allocation/cel/compile.go,
--- kubernetes/pkg/apis/resource/validation/validation.go (validateCELSelector).
local cel = require "cluster.cel"
local common = require "cluster.apiserver.resources.devices.common"
local field = require "cluster.apiserver.field"
local libraries = require "cluster.cel.libraries"

local M = {}

local types = cel.types
local COUNT_MAX, LENGTH_MAX, COST_MAX = 32, 10 * 1024, 1000000
local DOMAIN_MAX, ID_MAX, VALUE_MAX, ENTRIES_MAX = 63, 32, 64, 32

local environment


-- The type of `device`.
local function device_type()
  local domain, id = types.sized(types.string, DOMAIN_MAX), types.sized(types.string, ID_MAX)
  local function of(value)
    return types.sized(types.map(domain, types.sized(types.map(id, value), ENTRIES_MAX)), ENTRIES_MAX)
  end
  return types.object("kubernetes.DRADevice", {
    driver = { type = domain },
    allowMultipleAllocations = { type = types.bool },
    attributes = { type = of(types.sized(types.dyn, VALUE_MAX)) },
    capacity = { type = of(libraries.type_names()["kubernetes.Quantity"].value) },
  })
end


local function compile(text)
  environment = environment or cel.env { bindings = true, variables = { device = device_type() } }
  local program, issues = environment:compile(text)
  if not program then
    return nil, "compilation failed: " .. tostring(issues)
  elseif program.type.kind ~= "bool" and program.type.kind ~= "dyn" then
    return nil, ("must evaluate to bool or the unknown type, not %s"):format(types.format(program.type))
  end
  return program
end


local function check_expression(text, path, errors)
  if #text > LENGTH_MAX then
    errors[#errors + 1] = field.too_long(path, "", LENGTH_MAX)
    return
  end
  local program, why = compile(text)
  if not program then
    errors[#errors + 1] = field.invalid(path, text, why)
  elseif program.cost.max > COST_MAX then
    errors[#errors + 1] = field.forbidden(path, "too complex, exceeds cost limit")
  end
end


--- A list of selectors.
function M.check(list, path, errors)
  common.each(list, COUNT_MAX, path, errors, function(selector, at)
    if selector.cel then
      check_expression(selector.cel.expression, at .. ".cel.expression", errors)
    else
      errors[#errors + 1] = field.required(at .. ".cel", "")
    end
  end)
end


return M
