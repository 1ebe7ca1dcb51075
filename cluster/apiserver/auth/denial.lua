--- The Status of a request that the user is not allowed to make.
---
--- Wordings: apiserver/pkg/endpoints/handlers/responsewriters/errors.go.
local field = require "cluster.apiserver.field"
local status = require "cluster.apiserver.status"

local M = {}


-- 'User "a" cannot list resource "pods" in API group "" in the namespace "b"'.
local function complaint(user, attributes)
  local text = ("User %s cannot %s"):format(field.quote(user.name), attributes.verb)
  if not attributes.is_resource then
    return ("%s path %s"):format(text, field.quote(attributes.path))
  end
  local resource = attributes.resource or ""
  if attributes.subresource and attributes.subresource ~= "" then
    resource = resource .. "/" .. attributes.subresource
  end
  text = ("%s resource %s in API group %s"):format(text, field.quote(resource), field.quote(attributes.group))
  if attributes.namespace and attributes.namespace ~= "" then
    return text .. " in the namespace " .. field.quote(attributes.namespace)
  end
  return text .. " at the cluster scope"
end


--- @param attributes table as of a request: is_resource, verb, group, resource, subresource, namespace, name, or path
--- @param reason string|nil what ends the message
function M.status(user, attributes, reason)
  local why = complaint(user, attributes):gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" })
  if reason and reason ~= "" then
    why = why .. ": " .. reason
  end
  if attributes.is_resource then
    return status.forbidden({ group = attributes.group, plural = attributes.resource or "" }, attributes.name, why)
  end
  local failure = status.forbidden({ group = "", plural = "" }, nil, why)
  failure.message, failure.details = "forbidden: " .. why, {}
  return failure
end


return M
