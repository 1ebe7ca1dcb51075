--- PATCH of an object, or of its status: the media type selects one of four patch types.
---
--- Rules: apiserver/pkg/endpoints/handlers/patch.go.
local apply = require "cluster.apiserver.verbs.apply"
local change = require "cluster.apiserver.verbs.change"
local options = require "cluster.apiserver.verbs.options"
local store = require "cluster.apiserver.store"
local versioned_storage = require "cluster.apiserver.versioned_storage"
local write = require "cluster.apiserver.verbs.write"


-- The object after the patch. @return table|nil, or nil and a status
local function patched(request, kind, old, settings)
  local object, failure = change.apply(request, kind, old, request.res.schema, settings)
  if not object then
    return nil, failure
  end
  failure = change.prune_and_default(request, kind, request.res, object, settings)
  if failure then
    return nil, failure
  end
  return object
end


--- @return integer|nil code, string text; or nil and a status
return function(request)
  local kind, failure = change.kind(request)
  if not kind then
    return nil, failure
  end
  local settings
  settings, failure = options.patch(request, kind.name == "apply")
  if not settings then
    return nil, failure
  end
  if kind.name == "apply" then
    return apply.run(request, settings)
  end
  local entry
  entry, failure = versioned_storage.find(request)
  if not entry then
    return nil, failure
  end
  local object
  local old = store.object(request.res, entry)
  object, failure = patched(request, kind, old, settings)
  if not object then
    return nil, failure
  end
  failure = write.settle_namespace(request, object) or write.check_name(request, object)
  if failure then
    return nil, failure
  end
  write.track(request, old, object, settings)
  write.dedup_owners(request, object, true)
  local text
  text, failure = write.update(request, entry, old, object, settings)
  if not text then
    return nil, failure
  end
  return 200, text
end
