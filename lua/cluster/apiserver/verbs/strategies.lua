--- Steps with a kind's strategy that all writes share.
local respond = require "cluster.apiserver.respond"
local status = require "cluster.apiserver.status"

local M = {}

--- Stands for the strategy of a kind that has none.
M.NONE = {}


--- What strategies are given: { server =, request =, namespace = }.
function M.context(request)
  return { server = request.server, request = request, namespace = request.namespace }
end


--- Adds `more`, a list or nil, to `list`.
function M.append(list, more)
  for _, item in ipairs(more or {}) do
    list[#list + 1] = item
  end
end


--- Whether the object that a write began with is another one by now, because the request waited; verbs/init.lua tries
--- again then.
function M.is_stale(request, entry)
  if request.waited and request.server.store:get(request.res.id, entry.namespace, entry.name) ~= entry then
    request.is_stale = true
  end
  return request.is_stale
end


--- What a write with these field errors returns.
function M.invalid(res, object, errors)
  return nil, status.invalid(res.group, res.kind, object.metadata.name or "", errors)
end


--- Tells the client what the kind has to say about an object that is all right.
function M.warn(request, object, old)
  local strategy = request.res.strategy or M.NONE
  for _, warning in ipairs(strategy.warnings and strategy.warnings(object, old) or M.NONE) do
    respond.warn(request, warning)
  end
end


return M
