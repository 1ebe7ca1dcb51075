--- Garbage collection: deletes objects whose owners are gone; owners wait for their dependents, or orphan them.
---
--- Rules: kubernetes/pkg/controller/garbagecollector/{garbagecollector,graph_builder,operations}.go.
local dependents = require "cluster.apiserver.lifecycle.dependents"
local host = require "cluster.host"
local objects = require "cluster.apiserver.lifecycle.objects"
local store = require "cluster.apiserver.store"
local workqueue = require "cluster.apiserver.lifecycle.workqueue"

local M = {}
M.__index = M

local ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


--- @param server table
function M.new(server)
  local self = setmetatable({ server = server, objects = objects.new(server), dependents = dependents.new() }, M)
  self.queue = workqueue.new("garbage collector", function(reference) self:sync(reference) end)
  return self
end


local function has_finalizer(object, wanted)
  for _, finalizer in ipairs(object.metadata.finalizers or {}) do
    if finalizer == wanted then
      return true
    end
  end
  return false
end


local function waits_for_dependents(object)
  return object.metadata.deletionTimestamp ~= nil and has_finalizer(object, FOREGROUND)
end


-- The state of an owner: "solid", "dangling", "waiting", or nil if it is unknown: its kind is not served, or it is in
-- a namespace and the dependent is not.
local function state_of(self, owner, namespace)
  local res = self.server.registry:of(owner.apiVersion, owner.kind)
  if not res or res.namespaced and namespace == "" then
    return nil
  end
  local entry = self.server.store:get(res.id, res.namespaced and namespace or "", owner.name)
  if not entry or entry.uid ~= owner.uid then
    return "dangling"
  elseif entry.deleting and waits_for_dependents(store.object(res, entry)) then
    return "waiting"
  end
  return "solid"
end


-- Uids of an object's owners by their state; nil if one state is unknown.
local function classify(self, object)
  local found = { solid = {}, dangling = {}, waiting = {} }
  for _, owner in ipairs(object.metadata.ownerReferences or {}) do
    local state = state_of(self, owner, object.metadata.namespace or "")
    if not state then
      return nil
    end
    found[state][owner.uid] = true
  end
  return found
end


local function references_blocking(object, uid)
  for _, owner in ipairs(object.metadata.ownerReferences or {}) do
    if owner.uid == uid and owner.blockOwnerDeletion then
      return true
    end
  end
  return false
end


-- An owner that is deleted in the foreground goes when nothing is left that blocks it.
local function await_dependents(self, reference, object)
  local blocked = false
  for _, dependent in ipairs(self.dependents:of(reference.uid)) do
    local other = self.objects:current(dependent)
    host.give_way()
    if other and references_blocking(other, reference.uid) then
      blocked = true
      if not waits_for_dependents(other) then
        self:add(dependent)
      end
    end
  end
  if not blocked then
    self.objects:drop_finalizer(reference, object, FOREGROUND)
  end
end


-- Two objects that wait for each other would wait for ever: this one stops blocking.
local function unblock(self, reference, object)
  for _, dependent in ipairs(self.dependents:of(reference.uid)) do
    local other = self.objects:current(dependent)
    host.give_way()
    if other and waits_for_dependents(other) then
      local owners = object.metadata.ownerReferences
      for _, owner in ipairs(owners) do
        owner.blockOwnerDeletion = false
      end
      self.objects:set_owners(reference, owners)
      return
    end
  end
end


local function policy_of(object)
  if has_finalizer(object, ORPHAN) then
    return "Orphan"
  end
  return has_finalizer(object, FOREGROUND) and "Foreground" or "Background"
end


-- Deletes an object if no owner is left for whose sake it is there.
local function attempt(self, reference, object)
  if not object.metadata.ownerReferences then
    return
  end
  local owners = classify(self, object)
  if not owners then
    return
  end
  if next(owners.solid) then
    if next(owners.dangling) or next(owners.waiting) then
      for uid in pairs(owners.waiting) do
        owners.dangling[uid] = true
      end
      self.objects:drop_owners(reference, object, owners.dangling)
    end
  elseif next(owners.waiting) and self.dependents:has(reference.uid) then
    unblock(self, reference, object)
    self.objects:delete(reference, "Foreground")
  else
    self.objects:delete(reference, policy_of(object))
  end
end


-- Lets go of all dependents, and then of the object.
local function orphan(self, reference, object)
  for _, dependent in ipairs(self.dependents:of(reference.uid)) do
    local other = self.objects:current(dependent)
    if other then
      self.objects:drop_owners(dependent, other, { [reference.uid] = true })
    end
    host.give_way()
  end
  self.objects:drop_finalizer(reference, object, ORPHAN)
end


--- Looks at one object and does the next thing about it.
function M:sync(reference)
  local object = self.objects:current(reference)
  if not object then
    return
  end
  local deleting = object.metadata.deletionTimestamp ~= nil
  if deleting and has_finalizer(object, ORPHAN) then
    orphan(self, reference, object)
  elseif deleting and has_finalizer(object, FOREGROUND) then
    await_dependents(self, reference, object)
  elseif not deleting then
    attempt(self, reference, object)
  end
end


--- Has the object of a reference looked at, soon.
function M:add(reference)
  self.queue:add(reference.uid, reference)
end


local function add_all(self, references)
  for _, reference in ipairs(references) do
    self:add(reference)
  end
end


-- The owners of an entry that is gone, or has changed: they may have waited for it.
local function add_owners(self, entry)
  for _, owner in ipairs(entry.owners or {}) do
    local res = self.server.registry:of(owner.apiVersion, owner.kind)
    if res then
      local namespace = res.namespaced and entry.namespace or ""
      local found = self.server.store:get(res.id, namespace, owner.name)
      if found and found.uid == owner.uid and found.deleting then
        self:add { id = res.id, namespace = namespace, name = owner.name, uid = owner.uid }
      end
    end
  end
end


local function on_change(self, event)
  local entry, previous = event.entry, event.previous
  if entry.owners or previous and previous.owners then
    self.dependents:update(event)
  end
  if event.type == "DELETED" then
    add_all(self, self.dependents:of(entry.uid))
    add_owners(self, previous)
    return
  end
  local changed = not previous or not host.json.equal(entry.owners or {}, previous.owners or {})
  if entry.owners and changed or entry.deleting then
    self:add { id = event.id, namespace = entry.namespace, name = entry.name, uid = entry.uid }
  end
  if previous and previous.owners and changed then
    add_owners(self, previous)
  end
  if entry.deleting and not (previous and previous.deleting) then
    add_all(self, self.dependents:of(entry.uid))
  end
end


--- Begins: looks at what there is, then at what changes.
function M:start()
  local storage = self.server.store
  for _, id in ipairs(storage:ids()) do
    storage:collection(id):each(nil, nil, function(entry)
      self.dependents:update { type = "ADDED", id = id, entry = entry }
      if entry.owners or entry.deleting then
        self:add { id = id, namespace = entry.namespace, name = entry.name, uid = entry.uid }
      end
    end)
  end
  storage:subscribe(function(event) on_change(self, event) end)
end


return M
