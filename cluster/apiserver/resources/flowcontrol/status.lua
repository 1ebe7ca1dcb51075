--- The status of the kinds of flowcontrol.apiserver.k8s.io: conditions.
---
--- Rules: kubernetes/pkg/registry/flowcontrol/*/strategy.go, pkg/apis/flowcontrol/validation/validation.go.
local field = require "cluster.apiserver.field"

local M = {}


--- A strategy's prepare_create.
function M.clear(object)
  object.status = {}
end


--- A strategy's prepare_update.
function M.keep(new, old)
  new.status = old.status
end


--- A strategy's prepare_status: of the metadata only the managers of the fields change.
function M.prepare(new, old)
  local fields, version = new.metadata.managedFields, new.metadata.resourceVersion
  new.metadata, new.spec = {}, old.spec
  for key, value in pairs(old.metadata) do
    new.metadata[key] = value
  end
  new.metadata.managedFields, new.metadata.resourceVersion = fields, version
end


--- A strategy's validate_status.
function M.validate(new)
  local errors, seen = {}, {}
  for i, condition in ipairs(new.status.conditions or {}) do
    local path, kind = ("status.conditions[%d].type"):format(i - 1), condition.type or ""
    if seen[kind] then
      errors[#errors + 1] = field.duplicate(path, kind)
    end
    seen[kind] = true
    if kind == "" then
      errors[#errors + 1] = field.required(path, "")
    end
  end
  return errors
end


return M
