-- An in-memory world for specs of reconcilers: objects, a clock that moves by hand, and the
-- controller run on them until nothing changes any more.
--
--   local testing = require "moonloop.testing"
--   local world = testing.world { controller = require "cnat", now = "2026-07-03T10:00:00Z" }
--   world.apply { apiVersion = …, kind = "At", metadata = { name = "x" }, spec = … }
--   world.advance "5m"
--   assert.equal("DONE", world.get(At, "x").status.phase)
local context = require "moonloop.testing.context"
local objects = require "moonloop.testing.objects"
local result = require "moonloop.result"
local time = require "moonloop.time"

local M = {}

local ROUNDS_MAX = 100

local function key_of(object)
  return objects.key(object.apiVersion, object.kind, object.metadata.namespace, object.metadata.name)
end


local function same_kind(object, kind)
  return object.apiVersion == kind.apiVersion and object.kind == kind.kind
end


-- What the store does: versions, uids, garbage collection by owner.
local function add_store(world)
  local store, counter = {}, 0

  function world.find(object)
    local namespace = object.metadata.namespace
    return store[objects.key(object.apiVersion, object.kind, namespace, object.metadata.name)]
  end

  function world.stored(kind, name, namespace)
    return store[objects.key(kind.apiVersion, kind.kind, namespace, name)]
      or store[objects.key(kind.apiVersion, kind.kind, nil, name)]
  end

  function world.put(object)
    local old, new = world.find(object), objects.copy(object)
    counter = counter + 1
    new.metadata.uid = old and old.metadata.uid or "uid-" .. counter
    new.metadata.resourceVersion = old and old.metadata.resourceVersion or tostring(counter)
    if not (old and objects.equal(old, new)) then
      new.metadata.resourceVersion = tostring(counter)
      store[key_of(new)] = new
      world.writes = world.writes + 1
    end
    return store[key_of(new)]
  end

  function world.remove(object)
    store[key_of(object)] = nil
    world.writes = world.writes + 1
    for _, other in pairs(objects.copy(store)) do
      local owner = objects.controller_of(other)
      if owner and owner.uid == object.metadata.uid then
        world.remove(other)
      end
    end
  end

  function world.list(kind)
    local list = {}
    for _, object in pairs(store) do
      if same_kind(object, kind) then
        list[#list + 1] = object
      end
    end
    table.sort(list, function(a, b)
      return key_of(a) < key_of(b)
    end)
    return list
  end
end


-- One reconcile: its outcome becomes status, an event, or a time to come back.
local function reconcile(world, object)
  local where = world.controller.name
  local outcome, status, after, at, field, message =
    result.check(where, world.controller.reconcile(objects.view(object), context.new(world, object)))
  if outcome ~= "ok" then
    local note = field and field .. ": " .. message or message
    world.record(object, "Warning", outcome == "invalid" and "Invalid" or "Failed", note)
    return
  end
  local stored = world.find(object)
  if status and stored then
    stored = objects.copy(stored)
    stored.status = objects.merge(stored.status, status)
    world.put(stored)
  end
  world.due[key_of(object)] = at or after and world.now() + after or nil
end


local function add_time(world, now)
  function world.now()
    return now
  end

  --- Reconciles everything until nothing changes. Pods that have no phase start running.
  function world.settle()
    for _ = 1, ROUNDS_MAX do
      local before = world.writes
      for _, pod in ipairs(world.list { apiVersion = "v1", kind = "Pod" }) do
        if not pod.status then
          world.put(objects.merge(pod, { status = { phase = "Running" } }))
        end
      end
      for _, object in ipairs(world.list(world.controller.reconciles)) do
        reconcile(world, object)
      end
      if world.writes == before then
        return
      end
    end
    error(("no end after %d rounds: each reconcile changes something"):format(ROUNDS_MAX), 2)
  end

  --- Moves the clock, stopping wherever a reconcile asked to come back.
  function world.advance(duration)
    local goal = now + assert(time.duration(duration))
    while true do
      local nearest = goal
      for _, due in pairs(world.due) do
        if due > now and due < nearest then
          nearest = due
        end
      end
      now = nearest
      world.settle()
      if now >= goal then
        return
      end
    end
  end
end


--- A world with one controller. `now` is RFC 3339 or seconds; it stands still until advanced.
function M.world(options)
  local world = { controller = options.controller, writes = 0, events = {}, logs = {}, due = {} }
  local now = options.now or 0
  add_store(world)
  add_time(world, type(now) == "string" and assert(time.parse(now)) or now)

  function world.record(object, type, reason, note)
    world.events[#world.events + 1] =
      { type = type, reason = reason, note = note, name = object.metadata.name }
  end

  --- Creates the object or merges it over what is there (namespace "default"), and settles.
  function world.apply(object)
    local sent = objects.copy(object)
    sent.metadata.namespace = sent.metadata.namespace or "default"
    world.put(objects.merge(world.find(sent), sent))
    world.settle()
  end

  --- The object as a script sees it, or nil.
  function world.get(kind, name, namespace)
    local object = world.stored(kind, name, namespace or "default")
    return object and objects.view(object)
  end

  --- Deletes an object and what it owns, and settles.
  function world.delete(kind, name, namespace)
    world.remove(assert(world.stored(kind, name, namespace or "default")))
    world.settle()
  end

  --- Ends a pod: phase "Succeeded", or "Failed".
  function world.finish_pod(name, phase, namespace)
    local pod = assert(world.stored({ apiVersion = "v1", kind = "Pod" }, name, namespace or "default"))
    world.put(objects.merge(pod, { status = { phase = phase or "Succeeded" } }))
    world.settle()
  end

  return world
end


return M
