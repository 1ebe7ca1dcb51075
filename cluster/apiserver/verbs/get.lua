--- GET of one object, or of a subresource that shows the whole object (status).
local status = require "cluster.apiserver.status"
local versioned_storage = require "cluster.apiserver.versioned_storage"
local versions = require "cluster.apiserver.verbs.versions"


--- @return integer|nil code, string text; or nil and a status
return function(request)
  local storage = request.server.store
  local version = request.query.resourceVersion
  if version then
    local complaint = versions.complaint(version[1])
    if complaint then
      return nil, status.bad_request(complaint)
    end
    local _, failure = versions.read(version[1], storage.revision)
    if failure then
      return nil, failure
    end
  end
  local entry = storage:get(request.res.id, request.space, request.name)
  if not entry then
    return nil, status.not_found(request.res, request.name)
  end
  local text, failure = versioned_storage.text(request, entry)
  return text and 200, text or failure
end
