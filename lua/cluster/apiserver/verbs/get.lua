--- GET of one object, or of a subresource that shows the whole object (status).
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local versions = require "cluster.apiserver.verbs.versions"


--- @return integer|nil code, string text; or nil and a status
return function(request)
  local res, kept = request.res, request.server.store
  local asked = request.query.resourceVersion
  if asked then
    local complaint = versions.complaint(asked[1])
    if complaint then
      return nil, status.bad_request(complaint)
    end
    local _, failure = versions.read(asked[1], kept.revision)
    if failure then
      return nil, failure
    end
  end
  local entry = kept:get(res.id, request.space, request.name)
  if not entry then
    return nil, status.not_found(res, request.name)
  end
  return 200, store.object_text(res, entry)
end
