--- namespaces/finalize: the only request that changes the finalizers in a namespace's spec.
---
--- Rules: kubernetes/pkg/registry/core/namespace/{strategy,storage}.
local body = require "cluster.apiserver.verbs.body"
local options = require "cluster.apiserver.verbs.options"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local write = require "cluster.apiserver.verbs.write"

local M = {}


-- All but the finalizers stays as it was.
local function prepare(new, old)
  new.status = old.status
end


--- PUT. @return integer|nil code, string text; or nil and a status
function M.update(request)
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
  local entry = request.server.store:get("namespaces", "", request.name)
  if not entry then
    return nil, status.not_found(request.res, request.name)
  end
  local old = store.object(request.res, entry)
  request.prepare = prepare
  write.track(request, old, object, settings)
  local text
  text, failure = write.update(request, entry, old, object, settings)
  return text and 200, text or failure
end


return M
