--- Shared by delete and deletecollection: removes an object, or stores it marked for deletion.
---
--- Rules: apiserver/pkg/registry/rest/delete.go, apiserver/pkg/registry/generic/registry/store.go,
--- kubernetes/pkg/registry/core/namespace/storage/storage.go (kinds that are marked first).
local admission = require "cluster.apiserver.admission"
local body = require "cluster.apiserver.verbs.body"
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"
local options = require "cluster.apiserver.verbs.options"
local respond = require "cluster.apiserver.respond"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local strategies = require "cluster.apiserver.verbs.strategies"
local versioned_storage = require "cluster.apiserver.versioned_storage"

local M = {}

-- Of a grace period: seconds until a time that can be written. No timer is longer.
local GRACE_MAX = 1000000000

local NO_STRATEGY = {}
local CHANGED = "the object was changed while it was deleted; please try again"
local ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"

-- Kinds whose last state answers a deletion; others answer with a Status.
local RETURNED = {
  namespaces = true, pods = true, services = true, serviceaccounts = true, persistentvolumes = true,
  persistentvolumeclaims = true, podtemplates = true, resourcequotas = true, ["storageclasses.storage.k8s.io"] = true,
}

-- The default for dependents: they are deleted, except for these kinds.
local POLICY = { ["jobs.batch"] = "orphan", replicationcontrollers = "orphan", events = "unsupported" }
local JOBS = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
  .. "them or set propagationPolicy=Orphan to suppress this warning"


-- @return table|nil failure
local function check_preconditions(res, entry, wanted)
  local kind = { group = res.group, plural = res.kind }
  if wanted.uid and wanted.uid ~= entry.uid then
    return status.conflict(kind, entry.name, ("the UID in the precondition (%s) does not match the UID in record (%s). "
      .. "The object might have been deleted and then recreated"):format(wanted.uid, entry.uid))
  end
  local revision = tostring(entry.revision)
  if wanted.resourceVersion and wanted.resourceVersion ~= revision then
    return status.conflict(kind, entry.name, ("the ResourceVersion in the precondition (%s) does not match the "
      .. "ResourceVersion in record (%s). The object might have been modified"):format(
      wanted.resourceVersion, revision))
  end
end


-- The same for kinds that are marked first, which have words of their own.
local function check_marked(res, entry, wanted)
  local revision = tostring(entry.revision)
  local words = "Precondition failed: %s in precondition: %s, %s in object meta: %s"
  if wanted.uid and wanted.uid ~= entry.uid then
    return status.conflict(res, entry.name, words:format("UID", wanted.uid, "UID", entry.uid))
  elseif wanted.resourceVersion and wanted.resourceVersion ~= revision then
    return status.conflict(res, entry.name,
      words:format("ResourceVersion", wanted.resourceVersion, "ResourceVersion", revision))
  end
end


-- Which of "orphan" and "foregroundDeletion" a deletion asks for, or nil.
local function wanted_finalizer(res, meta, settings)
  local default = POLICY[res.id]
  if default == "unsupported" then
    return nil
  elseif settings.orphan ~= nil then
    return settings.orphan and ORPHAN or nil
  elseif settings.policy then
    return settings.policy == "Orphan" and ORPHAN or settings.policy == "Foreground" and FOREGROUND or nil
  end
  for _, finalizer in ipairs(meta.finalizers or {}) do
    if finalizer == ORPHAN or finalizer == FOREGROUND then
      return finalizer
    end
  end
  return default == "orphan" and ORPHAN or nil
end


-- Sets the finalizers that the settings ask for. Returns whether any remain.
local function settle_finalizers(res, meta, settings)
  local wanted, finalizers, had = wanted_finalizer(res, meta, settings), host.json.array {}, nil
  for _, finalizer in ipairs(meta.finalizers or {}) do
    if finalizer == ORPHAN or finalizer == FOREGROUND then
      had = finalizer
    else
      finalizers[#finalizers + 1] = finalizer
    end
  end
  if wanted ~= had then
    finalizers[#finalizers + 1] = wanted
    meta.finalizers = #finalizers > 0 and finalizers or nil
  end
  return meta.finalizers ~= nil
end


local function now_seconds()
  return math.floor(host.now())
end


-- Shortens the grace of an object that is being deleted. Returns whether anything changed.
local function shorten(meta, grace)
  local now = now_seconds()
  local time = instant.read(meta.deletionTimestamp) - math.min(meta.deletionGracePeriodSeconds, GRACE_MAX)
    + math.min(grace, GRACE_MAX)
  if time < now then
    time = now
    grace = grace ~= 0 and 1 or 0
  end
  meta.deletionTimestamp = instant.write(time)
  meta.deletionGracePeriodSeconds = grace
end


-- Marks an object if it gets time before it goes. Returns "graceful", "pending" (nothing is to be done) or nil (it goes
-- now).
local function give_grace(request, object, settings)
  local meta, strategy = object.metadata, request.res.strategy or NO_STRATEGY
  local grace = settings.grace and (settings.grace < 0 and 1 or settings.grace)
  if not strategy.graceful then
    return nil
  end
  if meta.deletionTimestamp then
    if (meta.deletionGracePeriodSeconds or 0) == 0 then
      return nil
    elseif not grace or grace >= meta.deletionGracePeriodSeconds then
      return "pending"
    end
    shorten(meta, grace)
    return "graceful", meta.deletionGracePeriodSeconds
  end
  grace = strategy.graceful(object, { gracePeriodSeconds = grace })
  if not grace then
    return nil
  end
  meta.deletionTimestamp = instant.write(now_seconds() + math.min(grace, GRACE_MAX))
  meta.deletionGracePeriodSeconds = grace
  if (meta.generation or 0) > 0 then
    meta.generation = meta.generation + 1
  end
  return "graceful", grace
end


local function mark_deleting(meta)
  if not meta.deletionTimestamp and (meta.generation or 0) > 0 then
    meta.generation = meta.generation + 1
  end
  if not meta.deletionTimestamp or instant.read(meta.deletionTimestamp) > now_seconds() then
    meta.deletionTimestamp = instant.write(now_seconds())
  end
  meta.deletionGracePeriodSeconds = 0
end


local function save(request, entry, object, settings)
  local res, storage = request.res, request.server.store
  if settings.dry_run then
    return host.json.encode(object)
  elseif host.json.equal(object, store.object(res, entry)) then
    return store.object_text(res, entry)
  end
  local prepared, failure = versioned_storage.storable(request, object)
  if failure then
    return nil, failure
  elseif strategies.is_stale(request, entry) then
    return nil, status.conflict(res, entry.name, CHANGED)
  end
  local changed
  changed, failure = storage:update(res, entry, object, prepared)
  if not changed then
    return nil, failure
  end
  return versioned_storage.text(request, changed)
end


-- The answer to a deletion that is done.
local function gone_text(res, object)
  if RETURNED[res.id] or res.strategy and res.strategy.returns_deleted then
    return host.json.encode(object)
  end
  local meta = object.metadata
  return host.json.encode(status.success {
    name = meta.name, group = res.group ~= "" and res.group or nil, kind = res.plural, uid = meta.uid,
  })
end


-- The answer to a deletion that changes nothing, because one is under way.
local function pending_text(request, entry)
  return gone_text(request.res, store.object(request.res, entry))
end


local function drop(request, entry, object, settings)
  if settings.dry_run then
    return gone_text(request.res, object), true
  end
  local gone, failure = request.server.store:delete(request.res, entry, object)
  if not gone then
    return nil, failure
  end
  return gone_text(request.res, object), true
end


-- A deletion with a grace of nothing: who watches sees the object marked, and then gone.
local function drop_at_once(request, entry, object, settings)
  if settings.dry_run then
    return gone_text(request.res, object), true
  end
  local marked, failure = request.server.store:update(request.res, entry, object)
  if not marked then
    return nil, failure
  end
  return drop(request, marked, store.object(request.res, marked), settings)
end


-- The first deletion of kinds that wait for more than finalizers.
local function mark(request, entry, object, settings)
  local res, meta = request.res, object.metadata
  meta.deletionTimestamp = instant.write(now_seconds())
  res.strategy.mark_deleted(object, { server = request.server, request = request, namespace = request.namespace })
  settle_finalizers(res, meta, settings)
  return save(request, entry, object, settings)
end


local function is_refused(request, entry, object, settings)
  local res = request.res
  local strategy = res.strategy or NO_STRATEGY
  local check = strategy.mark_deleted and check_marked or check_preconditions
  local failure = check(res, entry, settings.preconditions)
  if not failure and strategy.check_delete then
    failure = strategy.check_delete(object, request)
  end
  return failure or request.server.namespaces:check_delete(request, object)
end


--- Deletes the object of `entry`, or begins to.
---
--- @param settings table as M.settings returns them
--- @return string|nil text of the answer; nil and a status
--- @return boolean|nil gone whether the object is gone
function M.remove(request, entry, settings)
  local res = request.res
  local strategy = res.strategy or NO_STRATEGY
  local failure = versioned_storage.make_ready(request, { entry })
  if failure then
    return nil, failure
  end
  local object = store.object(res, entry)
  failure = is_refused(request, entry, object, settings) or admission.deleting(request, object, settings)
  if failure then
    return nil, failure
  elseif strategies.is_stale(request, entry) then
    return nil, status.conflict(res, entry.name, CHANGED)
  end
  if strategy.mark_deleted then
    if not object.metadata.deletionTimestamp then
      return mark(request, entry, object, settings)
    elseif strategy.may_go and not strategy.may_go(object) then
      return store.object_text(res, entry)
    end
  end
  if res.id == "jobs.batch" and settings.orphan == nil and not settings.policy then
    respond.warn(request, JOBS)
  end
  local had_finalizers = object.metadata.finalizers ~= nil
  local how, grace = give_grace(request, object, settings)
  if how == "pending" then
    return pending_text(request, entry)
  end
  local waiting = settle_finalizers(res, object.metadata, settings)
  if how == "graceful" and not waiting and grace == 0 then
    return drop_at_once(request, entry, object, settings)
  elseif waiting and not how then
    mark_deleting(object.metadata)
  end
  if waiting or how then
    return save(request, entry, object, settings)
  end
  return drop(request, entry, had_finalizers and store.object(res, entry) or object, settings)
end


--- Reads how a request wants to delete. @return table|nil as options.delete gives it; or nil and a status
function M.settings(request)
  local wanted, failure = body.delete_options(request)
  if failure then
    return nil, failure
  end
  return options.delete(request, wanted)
end


return M
