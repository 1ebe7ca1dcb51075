--- DELETE of one object.
local remove = require "cluster.apiserver.verbs.remove"
local status = require "cluster.apiserver.status"


--- @return integer|nil code, string text; or nil and a status
return function(request)
  local settings, failure = remove.settings(request)
  if not settings then
    return nil, failure
  end
  local entry = request.server.store:get(request.res.id, request.space, request.name)
  if not entry then
    return nil, status.not_found(request.res, request.name)
  end
  local text, gone = remove.remove(request, entry, settings)
  if not text then
    return nil, gone
  end
  return not gone and settings.orphan == false and 202 or 200, text
end
