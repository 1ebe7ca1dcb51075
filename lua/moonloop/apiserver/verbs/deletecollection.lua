--- DELETE of a collection: each object of it that is selected, as DELETE would.
local body = require "moonloop.apiserver.verbs.body"
local list = require "moonloop.apiserver.verbs.list"
local options = require "moonloop.apiserver.verbs.options"
local remove = require "moonloop.apiserver.verbs.remove"


--- @return integer|nil code, string text: the list of what was selected, as it was; or nil and a status
return function(request)
  local wanted, failure = body.delete_options(request)
  if failure then
    return nil, failure
  end
  local settings
  settings, failure = options.delete(request, wanted)
  if not settings then
    return nil, failure
  end
  local entries = {}
  local code, text = list(request, nil, entries)
  if not code then
    return nil, text
  end
  for _, entry in ipairs(entries) do
    local done, why = remove.remove(request, entry, settings)
    if not done then
      return nil, why
    end
  end
  return code, text
end
