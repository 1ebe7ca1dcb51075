--- Authenticates and authorizes each request.
---
--- Rules: apiserver/pkg/endpoints/filters/{authentication,authorization}.go.
local denial = require "cluster.apiserver.auth.denial"
local respond = require "cluster.apiserver.respond"

local M = {}


--- Lets a request through, with request.user set, or answers it. @return boolean passed
function M.pass(server, request, reply)
  local auth = server.auth
  if not request.user then
    local failure
    request.user, failure = auth:authenticate(request)
    if not request.user then
      respond.failure(request, reply, failure)
      return false
    end
  end
  local allowed, reason = auth:authorize(request.user, request)
  if not allowed then
    respond.failure(request, reply, denial.status(request.user, request, reason))
  end
  return allowed
end


return M
