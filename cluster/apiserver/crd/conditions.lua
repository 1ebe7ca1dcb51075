--- Conditions in the status of a CRD.
---
--- Rules: apiextensions-apiserver/pkg/apihelpers/helpers.go.
local host = require "cluster.host"

local M = {}


--- The condition of that type, or nil.
function M.find(crd, kind)
  local conditions = crd.status and crd.status.conditions
  if type(conditions) ~= "table" then
    return nil
  end
  for _, condition in ipairs(conditions) do
    if condition.type == kind then
      return condition
    end
  end
end


--- Returns true if the condition of that type is "True".
function M.is_true(crd, kind)
  local condition = M.find(crd, kind)
  return condition ~= nil and condition.status == "True"
end


--- Sets a condition. Its time stays when its status does.
function M.set(crd, kind, value, reason, message)
  local wanted = { type = kind, status = value, reason = reason, message = message }
  wanted.lastTransitionTime = host.timestamp()
  local known = M.find(crd, kind)
  if not known then
    local conditions = type(crd.status.conditions) == "table" and crd.status.conditions or host.json.array {}
    conditions[#conditions + 1] = wanted
    crd.status.conditions = conditions
    return
  end
  if known.status ~= value then
    known.status, known.lastTransitionTime = value, wanted.lastTransitionTime
  end
  known.reason, known.message = reason, message
end


return M
