--- The dependents of each object, from the owner references of all objects, kept up to date with the store.
---
--- A *reference* to an object is { id = of its resource, namespace, name, uid }.
local M = {}
M.__index = M


--- An index of nothing. `update` tells it of each change.
function M.new()
  return setmetatable({ by_owner = {} }, M)
end


local function remove(self, entry)
  for _, owner in ipairs(entry.owners or {}) do
    local found = self.by_owner[owner.uid]
    if found and found[entry.uid] then
      found[entry.uid] = nil
      if next(found) == nil then
        self.by_owner[owner.uid] = nil
      end
    end
  end
end


local function add(self, id, entry)
  for _, owner in ipairs(entry.owners or {}) do
    local found = self.by_owner[owner.uid]
    if not found then
      found = {}
      self.by_owner[owner.uid] = found
    end
    found[entry.uid] = { id = id, namespace = entry.namespace, name = entry.name, uid = entry.uid }
  end
end


--- Takes in an event of the store.
function M:update(event)
  if event.previous then
    remove(self, event.previous)
  end
  if event.type ~= "DELETED" then
    add(self, event.id, event.entry)
  end
end


local function before(a, b)
  if a.id ~= b.id then
    return a.id < b.id
  elseif a.namespace ~= b.namespace then
    return a.namespace < b.namespace
  end
  return a.name < b.name
end


--- References to what names the object with that uid as an owner, in order of resource, namespace and name.
function M:of(uid)
  local list = {}
  for _, reference in pairs(self.by_owner[uid] or {}) do
    list[#list + 1] = reference
  end
  table.sort(list, before)
  return list
end


--- Returns true if the object with that uid has dependents.
function M:has(uid)
  return self.by_owner[uid] ~= nil
end


return M
