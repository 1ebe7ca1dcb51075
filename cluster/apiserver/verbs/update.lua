--- PUT of an object, or of its status.
local body = require "cluster.apiserver.verbs.body"
local options = require "cluster.apiserver.verbs.options"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local versioned_storage = require "cluster.apiserver.versioned_storage"
local write = require "cluster.apiserver.verbs.write"


local function other_uid(request, object, entry)
  local res, uid = request.res, object.metadata.uid
  if not uid or uid == entry.uid then
    return nil
  end
  local key = "/registry/" .. (res.builtin and "" or res.group .. "/") .. res.plural .. "/"
    .. (entry.namespace ~= "" and entry.namespace .. "/" or "") .. entry.name
  return status.conflict(res, request.name, ("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, "
    .. "AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s"):format(
    key, uid, entry.uid))
end


local function create_instead(request, object, settings)
  local strategy = request.res.strategy
  if not (strategy and strategy.create_on_update) or request.subresource then
    return nil, status.not_found(request.res, request.name)
  end
  local failure = request.server.namespaces:check_create(request, object)
  if failure then
    return nil, failure
  end
  write.track(request, nil, object, settings)
  local text
  text, failure = write.create(request, object, settings)
  return text and 201, text or failure
end


--- @return integer|nil code, string text; or nil and a status
return function(request)
  local res = request.res
  local settings, failure = options.update(request)
  if not settings then
    return nil, failure
  end
  local object
  object, failure = body.object(request, settings)
  if not object then
    return nil, failure
  end
  failure = write.settle_namespace(request, object) or write.check_name(request, object)
  if failure then
    return nil, failure
  end
  local entry = request.server.store:get(res.id, request.space, request.name)
  if not entry then
    return create_instead(request, object, settings)
  end
  failure = other_uid(request, object, entry) or versioned_storage.make_ready(request, { entry })
  if failure then
    return nil, failure
  end
  local old = store.object(res, entry)
  write.dedup_owners(request, object)
  write.track(request, old, object, settings)
  local text
  text, failure = write.update(request, entry, old, object, settings)
  if not text then
    return nil, failure
  end
  return 200, text
end
