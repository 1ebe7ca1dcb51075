--- A controller of the control plane: changes become keys, keys are reconciled one by one, failed keys again later.
---
---   controller.start(server, {
---     name = "replicaset-controller",
---     kind = { "apps", "v1", "ReplicaSet" },      -- what is reconciled
---     owns = { "pods" },                          -- ids; a change of one enqueues its controller; a change of an
---                                                 -- orphan all objects that could adopt it
---     maps = { ["services"] = function(entry, previous, is_gone) … return keys end },   -- a change enqueues these
---     ignores = function(entry, previous) … end,      -- whether a change of the object itself is none (previous: nil
---                                                 -- for a new one); nil: never
---     watches = function(event) … return keys end,   -- any other change; nil: none of its objects
---     reconcile = function(api, object) … end,    -- may return seconds after which to look again
---     gone = function(api, namespace, name) … end,   -- the same for an object that is gone; nil: nothing is done
---   })
local client = require "cluster.controllers.client"
local host = require "cluster.host"

local M = {}

local NONE = {}
local PAUSE_FIRST, PAUSE_MAX = 0.005, 30
local LONG, REST_MAX = 0.1, 5 -- seconds


local function controller_of(entry)
  for _, owner in ipairs(entry.owners or {}) do
    if owner.controller then
      return owner
    end
  end
end


local function set_of(list)
  local set = {}
  for _, item in ipairs(list or {}) do
    set[item] = true
  end
  return set
end


--- Starts a controller as described above; it looks at everything that is there, then at what changes.
function M.start(server, spec)
  local api = client.new(server, spec.name)
  local group, version, kind = table.unpack(spec.kind)
  local res = server.registry:by_kind(group, version, kind)
  local owned, queue, queued, pauses, timers = set_of(spec.owns), {}, {}, {}, {}
  local resting = {} -- key → whether it is to be looked at after its rest
  local first, last = 1, 0 -- places in the queue
  local add, is_draining = nil, false -- add(key)

  local function later(key, seconds)
    if timers[key] then
      timers[key]:stop()
    end
    timers[key] = host.after(seconds, function()
      timers[key] = nil
      add(key)
    end)
  end

  -- A key that takes long is not looked at again before as much time has passed: others have theirs, and many changes
  -- of what belongs to it become one look.
  local function rest(key, seconds)
    if seconds < LONG then
      return
    end
    resting[key] = false
    host.after(math.min(seconds, REST_MAX), function()
      local is_wanted = resting[key]
      resting[key] = nil
      if is_wanted then
        add(key)
      end
    end)
  end

  -- @return seconds after which to look again, or nil
  local function look(key)
    local namespace, name = key:match "^(.-)/(.*)$"
    local entry = server.store:get(res.id, namespace, name)
    if entry then
      return spec.reconcile(api, server.store.object(res, entry))
    end
    return spec.gone and spec.gone(api, namespace, name)
  end

  local function work(key)
    local began = host.monotonic()
    local ok, after = pcall(look, key)
    rest(key, host.monotonic() - began)
    if ok then
      pauses[key] = nil
      if after then
        later(key, after)
      end
      return
    end
    pauses[key] = math.min((pauses[key] or PAUSE_FIRST / 2) * 2, PAUSE_MAX)
    host.log("debug", "will try again", { controller = spec.name, key = key, error = tostring(after) })
    later(key, pauses[key])
  end

  local function add_all(namespace)
    server.store:collection(res.id):each(namespace, nil, function(entry)
      add(entry.namespace .. "/" .. entry.name)
    end)
  end

  local function add_owner(entry)
    local owner = controller_of(entry)
    if not owner then
      host.defer(function()
        add_all(entry.namespace)
      end)
    elseif owner.kind == kind then
      add(entry.namespace .. "/" .. owner.name)
    end
  end

  -- One key at a time, also while a write of it waits for a webhook, or others have their turn.
  local function drain()
    while queue[first] do
      local key = queue[first]
      queue[first], first = nil, first + 1
      queued[key] = nil
      if resting[key] ~= nil then
        resting[key] = true
      else
        work(key)
      end
      host.give_way()
    end
    first, last, is_draining = 1, 0, false
  end

  function add(key)
    if resting[key] ~= nil then
      resting[key] = true
    elseif not queued[key] then
      queued[key] = true
      last = last + 1
      queue[last] = key
      if not is_draining then
        is_draining = true
        host.defer(drain)
      end
    end
  end

  local ids = { [res.id] = true }
  for id in pairs(owned) do
    ids[id] = true
  end
  for id in pairs(spec.maps or NONE) do
    ids[id] = true
  end
  server.store:subscribe(function(event)
    local entry = event.entry
    if event.id == res.id then
      if not spec.ignores or not spec.ignores(entry, event.previous) then
        add(entry.namespace .. "/" .. entry.name)
      end
    elseif owned[event.id] then
      add_owner(entry)
    elseif spec.maps and spec.maps[event.id] then
      for _, key in ipairs(spec.maps[event.id](entry, event.previous, event.type == "DELETED")) do
        add(key)
      end
    end
    for _, key in ipairs(spec.watches and spec.watches(event) or NONE) do
      add(key)
    end
  end, not spec.watches and ids or nil)
  add_all(nil)
end


return M
