--- DELETE of a collection: deletes each selected object of it as DELETE of the object would. Others are served
--- meanwhile.
local await = require "cluster.apiserver.await"
local host = require "cluster.host"
local list = require "cluster.apiserver.verbs.list"
local remove = require "cluster.apiserver.verbs.remove"


--- @return integer|nil code, string text: the list of what was selected, as it was; or nil and a status
return function(request)
  local settings, failure = remove.settings(request)
  if not settings then
    return nil, failure
  end
  local entries = {}
  local code, text = list(request, nil, entries)
  if not code then
    return nil, text
  end
  for _, listed in ipairs(entries) do
    local entry = request.server.store:get(request.res.id, listed.namespace, listed.name)
    if entry and entry.uid == listed.uid then
      local done, why = remove.remove(request, entry, settings)
      if not done then
        return nil, why
      end
    end
    await(request, host.give_way)
  end
  return code, text
end
