--- Asks webhooks and policies about a connection, before it is made.
---
--- Rules: apiserver/pkg/endpoints/handlers/rest.go (ConnectResource).
local admission = require "cluster.apiserver.admission"

local M = {}


local function same(options)
  return options
end


--- @param options table of the connection, with kind and apiVersion; webhooks may change it
--- @return table|nil status when it is forbidden
function M.ask(request, options)
  request.admission_view = { kind = { group = "", version = "v1", kind = options.kind }, of = same }
  return admission.mutating(request, "CONNECT", options, nil, {})
    or admission.validating(request, "CONNECT", options, nil, {})
end


return M
