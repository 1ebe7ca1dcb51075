-- The judgement that most specs end with: one pod for each At, ever.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"

local M = {}

--- Fails unless the namespace has `count` pods and none of them was created twice or deleted since `mark`. (A creation
--- whose client was gone by then is 504 in the audit log though it happened: the log has to show that there is never a
--- second one.)
---@param mark integer
---@param ns string
---@param count integer
function M.one_pod_each(mark, ns, count)
  local pods = api.list("Pod", ns)
  if #pods ~= count then
    error(("%d pods, expected %d"):format(#pods, count), 2)
  end
  for name, times in pairs(audit.pods_created(mark, ns)) do
    if times ~= 1 then
      error(("%s was created %d times"):format(name, times), 2)
    end
  end
  local deleted = audit.since(mark, { ns = ns, resource = "pods", verb = "delete" })
  if #deleted > 0 then
    error(("%s was deleted"):format(deleted[1].objectRef.name), 2)
  end
end


return M
