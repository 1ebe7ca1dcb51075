--- An object as its kind has it: what a request brings, a patch makes or a webhook changes.
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local schema = require "cluster.apiserver.schema"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"


-- An object that cannot be stored is refused before its fields are compared and checked one by one: of the largest
-- body that takes seconds, in which nobody else is served. A real server tells first what else is wrong with it.
local function check_size(res, object)
  if store.is_too_large(res, host.json.encode(object)) then
    error(status.etcd_refuses(), 0)
  end
end


--- Brings an object into the shape of its kind: takes out what the kind does not know, refuses what the server's
--- decoder would refuse, sets defaults. Raises a status when an object of a custom kind is larger than can be stored.
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
    check_size(res, object)
  end
  return unknown
end
