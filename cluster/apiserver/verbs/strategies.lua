--- Steps with a kind's strategy that all writes share.
local respond = require "cluster.apiserver.respond"
local status = require "cluster.apiserver.status"

local M = {}

--- Stands for the strategy of a kind that has none.
M.NONE = {}


--- The argument that strategies are called with: { server =, request =, namespace = }.
function M.context(request)
  return { server = request.server, request = request, namespace = request.namespace }
end


--- Adds `more`, a list or nil, to `list`.
function M.append(list, more)
  for _, item in ipairs(more or {}) do
    list[#list + 1] = item
  end
end


--- Returns true if the object that a write began with was replaced while the request waited; verbs/init.lua then tries
--- again.
function M.is_stale(request, entry)
  if request.has_waited and request.server.store:get(request.res.id, entry.namespace, entry.name) ~= entry then
    request.is_stale = true
  end
  return request.is_stale
end


--- The results of a write that has these field errors.
function M.invalid(res, object, errors)
  return nil, status.invalid(res.group, res.kind, object.metadata.name or "", errors)
end


--- Sends the client the kind's warnings about a valid object.
function M.warn(request, object, old)
  local strategy = request.res.strategy or M.NONE
  for _, warning in ipairs(strategy.warnings and strategy.warnings(object, old) or M.NONE) do
    respond.warn(request, warning)
  end
end


return M
