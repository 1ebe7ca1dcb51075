--- The end of a pod's containers: all at once, but sidecars (init containers that are restarted) after the others.
---
--- A sidecar is asked to end after the containers and the sidecars behind it have ended, or when the time is over that
--- all have together. Its preStop hook does not wait for that.
---
--- Rules: kubernetes/pkg/kubelet/kuberuntime/kuberuntime_container.go (killContainer),
--- kuberuntime_termination_order.go.
local host = require "cluster.host"

local M = {}
M.__index = M

local GRACE_LEAST = 2 -- seconds of a sidecar, however long the others took


local function has_running(records)
  for _, record in ipairs(records) do
    if record.handle then
      return true
    end
  end
  return false
end


local function run_hook(self, record, seconds)
  self.in_hook[record] = true
  record.handle:pre_stop(seconds, function()
    self.in_hook[record] = nil
    self:go_on()
  end)
end


--- Asks the containers of a pod to end.
--- @param init table, containers table  lists of records: record.lua
--- @param seconds number that they have; 0: all are killed
--- @return table ending: call its go_on whenever one of them has ended
function M.begin(init, containers, seconds)
  local self = setmetatable({
    init = init, containers = containers, is_killing = seconds == 0, stop_by = host.monotonic() + seconds,
    asked = {}, in_hook = {}, -- sets of sidecars
  }, M)
  for _, record in ipairs(init) do
    if record.handle and record.is_sidecar and not self.is_killing then
      run_hook(self, record, seconds)
    elseif record.handle and not record.is_sidecar then
      record.handle:stop(seconds)
    end
  end
  for _, record in ipairs(containers) do
    if record.handle then
      record.handle:stop(seconds)
    end
  end
  if self:go_on() then
    host.after(seconds, function()
      self:go_on()
    end)
  end
  return self
end


--- Asks the sidecars to end that have their turn. @return boolean whether there are some that wait
function M:go_on()
  local left, has_turn, are_waiting = self.stop_by - host.monotonic(), not has_running(self.containers), false
  for i = #self.init, 1, -1 do
    local record = self.init[i]
    if record.is_sidecar and record.handle then
      if not self.asked[record] and (has_turn and not self.in_hook[record] or left <= 0) then
        self.asked[record] = true
        record.handle:stop(self.is_killing and 0 or math.max(left, GRACE_LEAST))
      end
      are_waiting, has_turn = are_waiting or not self.asked[record], false
    end
  end
  return are_waiting
end


return M
