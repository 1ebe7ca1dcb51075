--- A queue of work that the loop runs soon, one item after another, and in turn with all else that it does. An item is
--- queued once, however often it is added.
local host = require "cluster.host"

local M = {}
M.__index = M


--- @param name string who works, for the log  @param work function(item) does the work; what it raises is logged
function M.new(name, work)
  return setmetatable({ name = name, work = work, items = {}, queued = {}, is_drain_due = false }, M)
end


local function drain(self)
  local at = 1
  while self.items[at] do
    local next_item = self.items[at]
    at = at + 1
    self.queued[next_item.key] = nil
    local ok, why = pcall(self.work, next_item.item)
    if not ok then
      host.log("error", "work of the control plane failed",
        { who = self.name, what = next_item.key, error = tostring(why) })
    end
    host.give_way()
  end
  self.items = {}
  self.is_drain_due = false
end


--- Asks for work on `item`, unless it waits already. @param key string tells items apart
function M:add(key, item)
  if self.queued[key] then
    return
  end
  self.queued[key] = true
  self.items[#self.items + 1] = { key = key, item = item }
  if not self.is_drain_due then
    self.is_drain_due = true
    host.defer(function() drain(self) end)
  end
end


return M
