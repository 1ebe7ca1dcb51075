--- Counts how much of each ResourceQuota is used.
---
--- A request is charged at once (quota/); this controller counts all objects when a quota changes, and when something
--- is gone. Rules: kubernetes/pkg/controller/resourcequota, pkg/quota/v1/install/update_filter.go.
local controller = require "cluster.controllers.controller"
local evaluator = require "cluster.apiserver.quota.evaluator"
local host = require "cluster.host"
local lists = require "cluster.apiserver.resources.resource_lists"
local scopes = require "cluster.apiserver.quota.scopes"

local M = {}

local RESYNC_SECONDS <const> = 300

-- Resources for which quotas count more than the number of objects.
local MEASURED = { pods = true, services = true, persistentvolumeclaims = true }


-- Adds to `used` what the objects of a resource use of the names in `tracked`.
local function count(server, quota, res, tracked, used)
  local namespace, store = quota.metadata.namespace, server.store
  local collection = store:collection(res.id)
  for name in pairs(tracked) do
    used[name] = used[name] or "0"
  end
  if not MEASURED[res.id] and not quota.spec.scopes and not quota.spec.scopeSelector then
    local size = tostring(collection:size(namespace))
    for name in pairs(tracked) do
      used[name] = size
    end
    return
  end
  collection:each(namespace, nil, function(entry)
    local object = store.object(res, entry)
    if scopes.meet(quota.spec, res.id, object) then
      lists.add(used, lists.mask(evaluator.of(res.id, object), tracked))
    end
  end)
end


local function reconcile(server, api, quota)
  local hard, used, seen = quota.spec.hard or {}, {}, {}
  for _, res in ipairs(server.registry:all()) do
    if res.namespaced and not seen[res.id] and not (res.strategy or {}).review then
      seen[res.id] = true
      local tracked = evaluator.tracked(res.id, hard)
      if next(tracked) then
        count(server, quota, res, tracked, used)
      end
    end
  end
  api.write_status(quota, { hard = next(hard) and hard or nil, used = next(used) and used or nil })
end


local function phase_of(entry)
  return entry.fields and entry.fields["status.phase"]
end


-- True if a change can free something.
local function frees(event)
  if event.type == "DELETED" then
    return true
  elseif event.type == "ADDED" then
    return false
  elseif event.id == "pods" then
    local phase = phase_of(event.entry)
    return (phase == "Succeeded" or phase == "Failed") and phase ~= phase_of(event.previous)
  end
  return MEASURED[event.id]
end


-- True if the spec did not change. A status that others wrote stays until the next count, for five minutes at most.
local function same_spec(entry, previous)
  return previous ~= nil and host.json.equal(host.json.decode(entry.text).spec, host.json.decode(previous.text).spec)
end


--- Starts the controller.
function M.start(server)
  local function watches(event)
    local collection = server.store.collections.resourcequotas
    local namespace = event.entry.namespace
    if not collection or namespace == "" or event.id == "resourcequotas" and event.type ~= "DELETED"
      or not frees(event) or collection:size(namespace) == 0 then
      return nil
    end
    local keys = {}
    collection:each(namespace, nil, function(entry)
      keys[#keys + 1] = namespace .. "/" .. entry.name
    end)
    return keys
  end
  controller.start(server, {
    name = "resourcequota-controller",
    kind = { "", "v1", "ResourceQuota" },
    ignores = same_spec,
    watches = watches,
    reconcile = function(api, quota)
      reconcile(server, api, quota)
      return RESYNC_SECONDS
    end,
  })
end


return M
