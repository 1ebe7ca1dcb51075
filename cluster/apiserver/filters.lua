--- Authenticates and authorizes each request.
---
--- Rules: apiserver/pkg/endpoints/filters/{authentication,authorization}.go, pkg/endpoints/request/requestinfo.go (a
--- list or watch that selects one name is about that name).
local fields = require "cluster.apiserver.selector.fields"
local respond = require "cluster.apiserver.respond"

local M = {}


-- The name that a list or watch selects, or nil.
local function selected_name(request)
  local texts = (request.verb == "list" or request.verb == "watch") and request.query.fieldSelector
  local terms = texts and fields.parse(texts[1])
  local name = terms and fields.exact(terms, "metadata.name")
  if name and name ~= "." and name ~= ".." and not name:find "[/%%]" then
    return name
  end
end


-- The attributes that roles are asked about: those of the request, with the name that it selects.
local function attributes_of(request)
  local name = not request.name and selected_name(request)
  return name and setmetatable({ name = name }, { __index = request }) or request
end


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
  local refusal = auth:refusal(request.user, attributes_of(request))
  if refusal then
    respond.failure(request, reply, refusal)
  end
  return not refusal
end


return M
