--- Puts what a plugin made of an object in its place.
---
--- Rules: apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go, plugin/policy/mutating/dispatcher.go.
local host = require "cluster.host"
local prune_and_default = require "cluster.apiserver.prune_and_default"
local versioned_storage = require "cluster.apiserver.versioned_storage"


-- The write's object becomes `object`, as `res` has it.
local function replace(attributes, object, res)
  if res ~= attributes.res and not attributes.request.admission_view then
    object = versioned_storage.convert_or_raise(attributes.request, object, res, attributes.res)
  end
  for key in pairs(attributes.object) do
    attributes.object[key] = nil
  end
  for key, value in pairs(object) do
    attributes.object[key] = value
  end
end


--- Brings `object` into the shape of its kind, and makes it the object of a write.
--- @param before table the object as it was  @param object table what it became; both as `res` has them
--- @return boolean|nil changed, or nil and why the object does not fit its kind
return function(attributes, before, object, res)
  local unknown_paths, why = prune_and_default(attributes.request.admission_view and {} or res, object)
  if not unknown_paths then
    return nil, why
  end
  local changed = not host.json.equal(before, object)
  replace(attributes, object, res)
  return changed
end
