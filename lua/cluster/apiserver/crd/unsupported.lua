--- Features of CRDs that the embedded server does not have: it refuses them, and never ignores them silently.
local status = require "cluster.apiserver.status"
local structural = require "cluster.apiserver.schema.structural"

local VALIDATIONS = "x-kubernetes-validations"


local function rules_at(schema, path)
  if schema[VALIDATIONS] and #schema[VALIDATIONS] > 0 then
    return path
  end
  local found
  structural.each_part(schema, path, function(inner, inner_path)
    found = found or rules_at(inner, inner_path)
  end)
  return found
end


--- A status when the CRD asks for what the embedded server does not do, or nil.
return function(crd)
  local spec = crd.spec
  if spec.conversion and spec.conversion.strategy == "Webhook" then
    return status.not_implemented("conversion by webhook (spec.conversion.strategy: Webhook)")
  end
  for i, version in ipairs(spec.versions or {}) do
    local schema = version.schema and version.schema.openAPIV3Schema
    local path = schema and rules_at(schema, ("spec.versions[%d].schema.openAPIV3Schema"):format(i - 1))
    if path then
      return status.not_implemented(("validation rules in CEL (%s.%s)"):format(path, VALIDATIONS))
    end
  end
end
