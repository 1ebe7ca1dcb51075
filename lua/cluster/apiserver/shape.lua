--- An object as its kind has it: what a request brings, a patch makes or a webhook changes.
local metadata = require "cluster.apiserver.metadata"
local schema = require "cluster.apiserver.schema"


--- Brings an object into the shape of its kind: takes out what the kind does not know, refuses what the server's
--- decoder would refuse, sets defaults.
--- @return table|nil unknown sorted paths of what was taken out; nil and why when it is refused
return function(res, object)
  local strategy = res.strategy
  local unknown = {}
  if res.schema then
    local why = schema.decode(res.schema, object)
    if why then
      return nil, why
    end
    unknown = schema.prune(res.schema, object)
  end
  metadata.normalize(object)
  local managers = object.metadata.managedFields -- an empty list says something, which a type would not keep
  if strategy and strategy.defaults then
    strategy.defaults(object)
    object.metadata.managedFields = managers
  elseif res.schema and not res.builtin then
    schema.default(res.schema, object)
  end
  return unknown
end
