--- The watches: each gets the events of its resource, namespace and selector, as lines of JSON.
---
--- A line is made once for each form, and all watches of that form share it (event.lines). A watch whose client does
--- not read is cut.
---
--- Where a webhook converts a kind's objects, the watches of a version get their events from a queue: an event waits
--- there until the webhook has answered, and those behind it wait as well.
---
--- Rules: apiserver/pkg/storage/cacher/cache_watcher.go (the event that a selector makes from a change).
local host = require "cluster.host"

local M = {}
M.__index = M

-- Bytes that may wait for one client before it is cut, not counting what it was sent at its start.
local WAITING_MAX = 4 * 1024 * 1024

-- Seconds between two bookmarks.
local BOOKMARK_SECONDS = 60

-- Seconds before its end that a watch gets its last bookmark (nextBookmarkTime in cache_watcher.go).
local LAST_BOOKMARK_SECONDS = 2


--- @param store table  it tells of changes; there is one hub for a store
function M.new(store)
  local self = setmetatable({ store = store, resources = {}, bookmark_watchers = 0, timer = nil }, M)
  store:subscribe(function(event) self:broadcast(event) end)
  return self
end


local function stop(self, watcher)
  if watcher.is_closed then
    return false
  end
  watcher.is_closed = true
  if watcher.timer then
    watcher.timer:stop()
  end
  if watcher.last_bookmark then
    watcher.last_bookmark:stop()
  end
  if watcher.bookmarks then
    self.bookmark_watchers = self.bookmark_watchers - 1
  end
  local list = self.resources[watcher.res.id]
  list.closed_count = list.closed_count + 1
  return true
end


-- Lists lose those who have gone when nobody walks them.
local function sweep(list)
  if list.closed_count == 0 or list.walking then
    return
  end
  local count = 0
  for i = 1, #list do
    local watcher = list[i]
    list[i] = nil
    if not watcher.is_closed then
      count = count + 1
      list[count] = watcher
    end
  end
  list.closed_count = 0
end


--- Sends a chunk. Cuts the client when too much waits for it.
function M:send(watcher, chunk)
  local waiting = watcher.reply:write(chunk)
  if waiting > watcher.waiting_max then
    if stop(self, watcher) then
      host.log("warn", "a watch was cut: its client does not read",
        { resource = watcher.res.id, waiting = waiting })
      watcher.reply:abort()
    end
  elseif waiting < WAITING_MAX then
    watcher.waiting_max = WAITING_MAX
  end
end


--- Ends a watch as its time is over.
function M:finish(watcher)
  if stop(self, watcher) then
    watcher.reply:finish()
  end
end


local function lines_of(event)
  local lines = event.lines
  if not lines then
    lines = {}
    event.lines = lines
  end
  return lines
end


local function line_of(event, watcher, kind, entry)
  local lines = lines_of(event)
  local key = watcher.keys[kind]
  local line = lines[key]
  if not line then
    line = watcher.form(kind, entry)
    lines[key] = line
  end
  return line
end


-- The last state that did match, at the revision of the change that made it match no more.
local function leaving(event, watcher)
  local key = watcher.keys.LEFT
  local lines = lines_of(event)
  local line = lines[key]
  if not line then
    line = watcher.form("DELETED", event.previous, event.revision)
    lines[key] = line
  end
  return line
end


-- The line that a watcher with a selector gets for a change, or nil.
local function selected_line(event, watcher)
  local match = watcher.selector.match
  local now = event.type ~= "DELETED" and match(event.entry)
  local before = event.previous ~= nil and match(event.previous)
  if now then
    return line_of(event, watcher, before and "MODIFIED" or "ADDED", event.entry)
  elseif not before then
    return nil
  elseif event.type == "DELETED" then
    return line_of(event, watcher, "DELETED", event.entry)
  end
  return leaving(event, watcher)
end


--- The line that tells `watcher` of an event, or nil when it is none of its business.
function M.line(event, watcher)
  if watcher.namespace and watcher.namespace ~= event.entry.namespace then
    return nil
  end
  if watcher.selector.empty then
    return line_of(event, watcher, event.type, event.entry)
  end
  return selected_line(event, watcher)
end


-- Tells those who watch without a queue, or (if one is given) those of a queue.
local function deliver(self, list, event, queue)
  list.walking = true
  for i = 1, #list do
    local watcher = list[i]
    if watcher.queue == queue and not watcher.is_closed and event.revision > watcher.after then
      local line = M.line(event, watcher)
      if line then
        self:send(watcher, line)
      end
    end
  end
  list.walking = false
  event.lines = nil -- or what is remembered for a later watch would be twice as large
  sweep(list)
end


-- Ends all watches of a queue whose objects cannot be converted: the watchers list again, and the list says the error.
local function end_queue(self, list, queue, why)
  host.log("warn", "watches ended: their objects could not be converted", { resource = queue.res.id, error = why })
  queue.events = {}
  for i = 1, #list do
    if list[i].queue == queue then
      self:finish(list[i])
    end
  end
end


-- Delivers what waits in a queue, in its order; waits for the webhook.
local function drain(self, list, queue)
  local webhook = queue.res.convert.webhook
  while queue.events[1] do
    local event = queue.events[1]
    local why = webhook:make_ready({ event.entry, event.previous }, queue.res)
    if why then
      return end_queue(self, list, queue, why)
    end
    table.remove(queue.events, 1)
    deliver(self, list, event, queue)
  end
end


-- Puts an event into a queue; its Lua thread works until the queue is empty.
local function enqueue(self, list, queue, event)
  queue.events[#queue.events + 1] = event
  if queue.is_busy then
    return
  end
  queue.is_busy = true
  coroutine.wrap(function()
    local ok, why = xpcall(drain, debug.traceback, self, list, queue)
    if not ok then
      end_queue(self, list, queue, why)
    end
    queue.is_busy = false
  end)()
end


-- The queues that still have a watcher: objects are converted only for these.
local function queues_in_use(list)
  local queues, seen = {}, {}
  for i = 1, #list do
    local queue = list[i].queue
    if queue and not list[i].is_closed and not seen[queue] then
      seen[queue] = true
      queues[#queues + 1] = queue
    end
  end
  return queues
end


--- Tells all who watch the event's resource.
function M:broadcast(event)
  local list = self.resources[event.id]
  if not list then
    return
  end
  local queues = queues_in_use(list)
  deliver(self, list, event, nil)
  for _, queue in ipairs(queues) do
    enqueue(self, list, queue, event)
  end
end


-- The queue for a version whose objects a webhook converts, which those who watch that version share; nil: none is
-- needed.
local function queue_of(list, res)
  if not (res.convert and res.convert.webhook) then
    return nil
  end
  for _, queue in ipairs(queues_in_use(list)) do
    if queue.res == res then
      return queue
    end
  end
  return { res = res, events = {}, is_busy = false }
end


-- Tells a watch how far it is, if it asked for that.
local function bookmark(self, watcher)
  local waits = watcher.queue and watcher.queue.is_busy
  if watcher.bookmarks and not waits and not watcher.is_closed and self.store.revision >= watcher.after then
    self:send(watcher, watcher.bookmark(self.store.revision))
  end
end


local function bookmark_all(self)
  local ids = {}
  for id in pairs(self.resources) do
    ids[#ids + 1] = id
  end
  table.sort(ids)
  for _, id in ipairs(ids) do
    for _, watcher in ipairs(self.resources[id]) do
      bookmark(self, watcher)
    end
    sweep(self.resources[id])
  end
end


local function arm(self)
  if self.timer or self.bookmark_watchers == 0 then
    return
  end
  self.timer = host.after(BOOKMARK_SECONDS, function()
    self.timer = nil
    bookmark_all(self)
    arm(self)
  end)
end


--- Adds a watcher. The objects sent to it before count as `sent` bytes.
--- @param watcher table
---   res, namespace (nil: all), selector, reply, bookmarks (true if it wants them), timeout (seconds)
---   keys       type of event → key of its line in event.lines; LEFT: for an object that left the selection
---   form       function(type, entry, revision?) -> line; `revision` takes the place of the entry's own
---   bookmark   function(revision) -> line
---   after      the revision that it has seen; if the server is still before that, it gets only what comes after it
function M:add(watcher, sent)
  watcher.waiting_max = WAITING_MAX + sent
  watcher.is_closed = false
  local list = self.resources[watcher.res.id]
  if not list then
    list = { closed_count = 0, walking = false }
    self.resources[watcher.res.id] = list
  end
  sweep(list)
  watcher.queue = queue_of(list, watcher.res)
  list[#list + 1] = watcher
  if watcher.bookmarks then
    self.bookmark_watchers = self.bookmark_watchers + 1
    arm(self)
  end
  watcher.timer = host.after(watcher.timeout, function() self:finish(watcher) end)
  if watcher.bookmarks and watcher.timeout > LAST_BOOKMARK_SECONDS then
    watcher.last_bookmark = host.after(watcher.timeout - LAST_BOOKMARK_SECONDS, function() bookmark(self, watcher) end)
  end
  watcher.reply.on_close = function() stop(self, watcher) end
end


--- Ends all watches of a resource that is served no more.
function M:end_all(id)
  for _, watcher in ipairs(self.resources[id] or {}) do
    self:finish(watcher)
  end
end


return M
