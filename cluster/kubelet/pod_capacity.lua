--- The capacity of the node for pods: how many it takes at once. A pod counts from when it has the node until it ended.
---
--- Rules: kubernetes/pkg/scheduler/framework/plugins/noderesources/fit.go (fitsRequest), and
--- kubernetes/pkg/kubelet/lifecycle/predicate.go for pods that name the node themselves.
local M = {}
M.__index = M

local ENDED = { Succeeded = true, Failed = true }


--- @param node string its name  @param most integer|nil how many; nil: any number
function M.new(node, most)
  return setmetatable({ node = node, most = most, pod_count = 0 }, M)
end


local function takes_one(self, entry)
  local fields = entry and entry.fields
  return fields and fields["spec.nodeName"] == self.node and not ENDED[fields["status.phase"]]
end


--- Counts a pod that is there.
function M:add(entry)
  self.pod_count = self.pod_count + (takes_one(self, entry) and 1 or 0)
end


--- Counts what an event of a pod changes. @return boolean whether one more has a place, where there was none
function M:update(event)
  local was_full = self:is_full()
  local now = event.type ~= "DELETED" and takes_one(self, event.entry)
  self.pod_count = self.pod_count + (now and 1 or 0) - (takes_one(self, event.previous) and 1 or 0)
  return was_full and not self:is_full()
end


function M:is_full()
  return self.most ~= nil and self.pod_count >= self.most
end


--- Why the kubelet does not take a pod that has the node, and is counted, or nil.
function M:problem()
  if self.most and self.pod_count > self.most then
    return ("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d"):format(
      self.pod_count - 1, self.most)
  end
end


return M
