--- How far back lists may read: what was current five minutes before is the oldest state that pages, and lists of an
--- exact version, can be had of. Watches are not concerned: they start from the changes that are kept of their
--- resource; see collection.lua.
---
--- A real API server looks every five minutes, so that a page is good for five to ten; here it is looked at each
--- minute. Nothing wakes for it: who writes or reads asks. Rules: apiserver/pkg/storage/etcd3/compact.go.
local host = require "cluster.host"

local M = {}
M.__index = M

local TICK_SECONDS <const> = 60
local KEPT <const> = 5 -- ticks


--- Begins to count at the present.
function M.new()
  return setmetatable({
    started = host.monotonic(), tick = 0,
    marks = { [0] = 0 },   -- number of a tick, modulo KEPT + 1 → the revision that was current then
  }, M)
end


--- The oldest revision that can be read. To be asked before each change, so that the ticks that have come since the
--- last one are noticed in time.
--- @param revision integer the current one
function M:oldest_at(revision)
  local tick = (host.monotonic() - self.started) // TICK_SECONDS
  for number = math.max(self.tick + 1, tick - KEPT), tick do
    self.marks[number % (KEPT + 1)] = revision
  end
  self.tick = tick
  return self.marks[(tick - KEPT) % (KEPT + 1)] or 0
end


return M
