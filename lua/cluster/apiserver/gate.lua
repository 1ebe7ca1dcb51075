--- Authenticates and authorizes each request.
---
--- Rules: apiserver/pkg/endpoints/filters/{authentication,authorization}.go.
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
  local refusal = auth:refusal(request.user, request)
  if refusal then
    respond.failure(request, reply, refusal)
  end
  return not refusal
end


return M
