--- Deletes Events an hour after their last write.
---
--- Rules: kubernetes/pkg/registry/core/event/storage (TTL), kube-apiserver's --event-ttl.
local host = require "cluster.host"
local store = require "cluster.apiserver.store"

local M = {}

local ID = "events"
local SECONDS = 3600


-- Removes what has been here long enough, unless it was written again since.
local function sweep(self)
  local now, storage = host.monotonic(), self.server.store
  local res = self.server.registry:by_id(ID)
  while self.first <= self.last and self.waiting[self.first].time <= now do
    local item = self.waiting[self.first]
    self.waiting[self.first] = nil
    self.first = self.first + 1
    local entry = storage:get(ID, item.namespace, item.name)
    if entry and entry.revision == item.revision then
      storage:delete(res, entry, store.object(res, entry))
    end
  end
end


local function arm(self)
  if self.timer or self.first > self.last then
    return
  end
  local seconds = math.max(self.waiting[self.first].time - host.monotonic(), 0)
  self.timer = host.after(seconds, function()
    self.timer = nil
    sweep(self)
    arm(self)
  end)
end


local function add(self, entry)
  self.last = self.last + 1
  self.waiting[self.last] = {
    namespace = entry.namespace, name = entry.name, revision = entry.revision, time = host.monotonic() + SECONDS,
  }
  arm(self)
end


--- Begins, with the events there are.
function M.start(server)
  local self = { server = server, waiting = {}, first = 1, last = 0, timer = nil }
  server.store:collection(ID):each(nil, nil, function(entry) add(self, entry) end)
  server.store:subscribe(function(event)
    if event.type ~= "DELETED" then
      add(self, event.entry)
    end
  end, { [ID] = true })
end


return M
