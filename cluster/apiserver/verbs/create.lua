--- POST of an object to a collection.
local admission = require "cluster.apiserver.admission"
local body = require "cluster.apiserver.verbs.body"
local host = require "cluster.host"
local options = require "cluster.apiserver.verbs.options"
local write = require "cluster.apiserver.verbs.write"


-- Removes fields that only the server sets.
local function wipe(meta)
  meta.uid = nil
  meta.creationTimestamp = nil
  meta.deletionTimestamp = nil
  meta.deletionGracePeriodSeconds = nil
  meta.selfLink = nil
end


-- Answers a kind that is a question.
local function review(request, object, settings)
  write.track(request, nil, object, settings)
  local failure = admission.mutating(request, "CREATE", object, nil, settings)
    or admission.validating(request, "CREATE", object, nil, settings)
  if failure then
    return nil, failure
  end
  local answer
  answer, failure = request.res.strategy.review(object, request)
  if not answer then
    return nil, failure
  end
  answer.apiVersion, answer.kind = request.res.api_version, request.res.kind
  return 201, host.json.encode(answer)
end


--- @return integer|nil code, string text; or nil and a status
return function(request)
  local settings, failure = options.create(request)
  if not settings then
    return nil, failure
  end
  local object
  object, failure = body.object(request, settings)
  if not object then
    return nil, failure
  end
  wipe(object.metadata)
  failure = write.settle_namespace(request, object)
  if failure then
    return nil, failure
  end
  local strategy = request.res.strategy
  if strategy and strategy.review then
    return review(request, object, settings)
  end
  write.dedup_owners(request, object)
  failure = request.server.namespaces:check_create(request, object)
  if failure then
    return nil, failure
  end
  write.track(request, nil, object, settings)
  local text
  text, failure = write.create(request, object, settings)
  if not text then
    return nil, failure
  end
  return 201, text
end
