--- The objects of one resource in their order, and its latest changes.
---
--- The order is that of the keys "namespace/name" compared bytewise, as in etcd. Names are sorted for a list, not for
--- a write: a write needs no search and moves nothing.
local M = {}
M.__index = M

-- Bytes of JSON in the changes that are kept of one resource, beside the latest.
local HISTORY_BYTES_MAX = 16 * 1024 * 1024


--- @param id string "deployments.apps"  @param history integer how many changes are kept
--- @param floor integer the revision from which on all changes are known
function M.new(id, history, floor)
  return setmetatable({
    id = id,
    -- namespace → { key = "namespace/", entries = name → entry, names = sorted or nil, fresh = {} }
    spaces = {},
    order = nil,          -- the spaces in order, or nil when one has come or gone
    count = 0,            -- objects
    revision = floor,     -- of the latest change
    floor = floor,        -- changes after this revision are in the ring
    pasts = setmetatable({}, { __mode = "v" }),   -- revision → the collection as it was
    ring = {}, first = 1, last = 0, capacity = history, bytes = 0,
  }, M)
end


--- The entry of that name, or nil.
function M:get(namespace, name)
  local space = self.spaces[namespace]
  return space and space.entries[name]
end


local function space_of(self, namespace)
  local space = self.spaces[namespace]
  if not space then
    space = { key = namespace == "" and "" or namespace .. "/", entries = {}, count = 0, names = {}, fresh = {} }
    self.spaces[namespace] = space
    self.order = nil
  end
  return space
end


--- Puts an entry in, in the place of the one with its name.
function M:put(entry)
  local space = space_of(self, entry.namespace)
  if not space.entries[entry.name] then
    space.fresh[#space.fresh + 1] = entry.name
    space.count = space.count + 1
    self.count = self.count + 1
  end
  space.entries[entry.name] = entry
end


--- Takes the entry with the name of `entry` out; it must be there.
function M:remove(entry)
  local space = self.spaces[entry.namespace]
  space.entries[entry.name] = nil
  space.count = space.count - 1
  self.count = self.count - 1
  if space.count == 0 then
    self.spaces[entry.namespace] = nil
    self.order = nil
  end
end


-- Joins sorted names that are still there with sorted fresh ones. A name may be in both, when it went and came again.
local function merge(names, fresh, entries)
  local merged, count, j = {}, 0, 1
  local function take(name)
    if entries[name] and merged[count] ~= name then
      count = count + 1
      merged[count] = name
    end
  end
  for _, name in ipairs(names) do
    while fresh[j] and fresh[j] < name do
      take(fresh[j])
      j = j + 1
    end
    take(name)
  end
  for k = j, #fresh do
    take(fresh[k])
  end
  return merged
end


local function names_of(space)
  if #space.fresh > 0 or #space.names ~= space.count then
    table.sort(space.fresh)
    space.names = merge(space.names, space.fresh, space.entries)
    space.fresh = {}
  end
  return space.names
end


local function spaces_in_order(self)
  if not self.order then
    local order = {}
    for _, space in pairs(self.spaces) do
      order[#order + 1] = space
    end
    table.sort(order, function(a, b) return a.key < b.key end)
    self.order = order
  end
  return self.order
end


-- Index of the first name that is not before `from`.
local function lower_bound(names, from)
  local low, high = 1, #names + 1
  while low < high do
    local middle = (low + high) // 2
    if names[middle] < from then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end


local function visit_space(space, from, visit)
  local names, entries = names_of(space), space.entries
  local start = 1
  if from ~= "" then
    start = lower_bound(names, from)
  end
  for i = start, #names do
    if visit(entries[names[i]]) == false then
      return false
    end
  end
end


--- Calls visit(entry) for the entries in their order; `visit` ends it by returning false and must not write.
--- @param namespace string|nil only those of this namespace; nil: of all
--- @param from string|nil only keys that are not before this one: "name" within a namespace, else "namespace/name"
function M:each(namespace, from, visit)
  from = from or ""
  if namespace then
    local space = self.spaces[namespace]
    return space and visit_space(space, from, visit)
  end
  for _, space in ipairs(spaces_in_order(self)) do
    local start
    if from:sub(1, #space.key) == space.key then
      start = from:sub(#space.key + 1)
    elseif space.key > from then
      start = ""
    end
    if start and visit_space(space, start, visit) == false then
      return false
    end
  end
end


--- How many objects there are, in one namespace or (nil) in all.
function M:size(namespace)
  if not namespace then
    return self.count
  end
  local space = self.spaces[namespace]
  return space and space.count or 0
end


--- How many entries have a key after `key`, within one namespace or (nil) in all; see M:each for keys.
function M:count_after(namespace, key)
  local function after(space, name)
    local names = names_of(space)
    return #names - lower_bound(names, name .. "\0") + 1
  end
  if namespace then
    local space = self.spaces[namespace]
    return space and after(space, key) or 0
  end
  local count = 0
  for _, space in ipairs(spaces_in_order(self)) do
    if key:sub(1, #space.key) == space.key then
      count = count + after(space, key:sub(#space.key + 1))
    elseif space.key > key then
      count = count + space.count
    end
  end
  return count
end


--- Remembers a change. The oldest are forgotten when there are too many, or when they are too large together.
function M:record(event)
  self.revision = event.revision
  self.last = self.last + 1
  if self.last - self.first >= self.capacity then
    self:forget_first()
  end
  self.ring[(self.last - 1) % self.capacity + 1] = event
  self.bytes = self.bytes + #event.entry.text
  while self.bytes > HISTORY_BYTES_MAX and self.first < self.last do
    self:forget_first()
  end
end


--- Forgets the oldest change.
function M:forget_first()
  local slot = (self.first - 1) % self.capacity + 1
  self.floor = self.ring[slot].revision
  self.bytes = self.bytes - #self.ring[slot].entry.text
  self.ring[slot] = nil
  self.first = self.first + 1
end


--- Forgets all changes up to `revision`.
function M:compact(revision)
  while self.first <= self.last and self.ring[(self.first - 1) % self.capacity + 1].revision <= revision do
    self:forget_first()
  end
  self.floor = math.max(self.floor, revision)
end


-- Number of the first change after `revision`.
local function first_after(self, revision)
  local low, high = self.first, self.last + 1
  while low < high do
    local middle = (low + high) // 2
    if self.ring[(middle - 1) % self.capacity + 1].revision <= revision then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end


--- The changes after `revision`, oldest first, as a list; nil when some of them are forgotten.
function M:since(revision)
  if revision < self.floor then
    return nil
  end
  local events = {}
  for i = first_after(self, revision), self.last do
    events[#events + 1] = self.ring[(i - 1) % self.capacity + 1]
  end
  return events
end


--- The collection as it was at `revision`, with `each`, `size` and `get`; nil when that is forgotten. Pages of one list
--- share what was made, as long as nothing else needs the memory.
function M:at(revision)
  if revision >= self.revision then
    return self
  end
  local events = self:since(revision)
  if not events then
    return nil
  elseif self.pasts[revision] then
    return self.pasts[revision]
  end
  local past = M.new(self.id, 1, revision)
  self:each(nil, nil, function(entry) past:put(entry) end)
  for i = #events, 1, -1 do
    local event = events[i]
    if event.previous then
      past:put(event.previous)
    else
      past:remove(event.entry)
    end
  end
  self.pasts[revision] = past
  return past
end


return M
