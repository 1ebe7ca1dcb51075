--- The Status objects of failed requests.
---
--- A verb that fails returns `nil, status`; `status.code` is also the HTTP code.
--- Rules and wordings: apimachinery/pkg/api/errors/errors.go.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"

local M = {}

--- How many errors of one object are told.
M.ERRORS_MAX = 1000


local function failure(code, reason, message, details)
  return {
    kind = "Status",
    apiVersion = "v1",
    metadata = {},
    status = "Failure",
    message = message,
    reason = reason,
    details = details,
    code = code,
  }
end


-- "deployments.apps", "pods": how messages name a resource or a kind.
local function qualified(name, group)
  return group ~= "" and name .. "." .. group or name
end


local function details_of(res, name)
  return {
    name = name ~= "" and name or nil,
    group = res.group ~= "" and res.group or nil,
    kind = res.plural,
  }
end


--- How messages name `res`: "deployments.apps".
function M.resource_name(res)
  return qualified(res.plural, res.group)
end


--- The request makes no sense as it was sent.
function M.bad_request(message)
  return failure(400, "BadRequest", message)
end


--- Nobody knows who is asking.
function M.unauthorized(message)
  return failure(401, "Unauthorized", message or "Unauthorized")
end


--- `name` may be "" for a whole collection. `why` ends the message.
function M.forbidden(res, name, why)
  local what = M.resource_name(res)
  if name and name ~= "" then
    what = what .. " " .. field.quote(name)
  end
  return failure(403, "Forbidden", what .. " is forbidden: " .. why, details_of(res, name))
end


--- There is no object of that name.
function M.not_found(res, name)
  local message = ("%s %s not found"):format(M.resource_name(res), field.quote(name))
  return failure(404, "NotFound", message, details_of(res, name))
end


--- There is no such path; the server answers this for kinds it does not serve.
function M.no_such_path()
  return failure(404, "NotFound", "the server could not find the requested resource", {})
end


--- The kind is served, but not with this verb.
function M.method_not_supported(res, action)
  local message = ("%s is not supported on resources of kind %s"):format(action, field.quote(M.resource_name(res)))
  return failure(405, "MethodNotAllowed", message, details_of(res))
end


--- None of the content types the client takes can be made. `types` lists those that can.
function M.not_acceptable(types)
  return failure(406, "NotAcceptable", "only the following media types are accepted: " .. table.concat(types, ", "))
end


--- The body came in a form that is not read. `types` lists those that are.
function M.unsupported_media(types)
  local message = "the body of the request was in an unknown format - accepted media types include: "
  return failure(415, "UnsupportedMediaType", message .. table.concat(types, ", "))
end


--- The name is taken.
function M.already_exists(res, name)
  local message = ("%s %s already exists"):format(M.resource_name(res), field.quote(name))
  return failure(409, "AlreadyExists", message, details_of(res, name))
end


--- The object is no longer as the client assumed. `why` ends the message.
function M.conflict(res, name, why)
  local message = ("Operation cannot be fulfilled on %s %s: %s"):format(
    M.resource_name(res), field.quote(name), why)
  return failure(409, "Conflict", message, details_of(res, name))
end


--- Server-side apply met fields of other managers. `causes`: a list of { type =, message =, field = }.
function M.apply_conflict(causes, message)
  return failure(409, "Conflict", message, { causes = host.json.array(causes) })
end


--- The history that was asked for is gone.
function M.expired(message)
  return failure(410, "Expired", message)
end


--- The body is larger than the server reads.
function M.too_large(message)
  return failure(413, "RequestEntityTooLarge", "Request entity too large: " .. message)
end


--- Several messages as one, as upstream's aggregate has them: each once; one stands alone, several in brackets.
function M.aggregate(messages)
  local seen, list = {}, {}
  for _, message in ipairs(messages) do
    if not seen[message] then
      seen[message] = true
      list[#list + 1] = message
    end
  end
  return #list == 1 and list[1] or "[" .. table.concat(list, ", ") .. "]"
end


--- The object breaks rules of its kind. `errors`: a list of field errors, at least one. Errors beyond M.ERRORS_MAX are
--- left out: an answer is not to be many times as long as what was asked.
function M.invalid(group, kind, name, errors)
  local causes, messages = host.json.array {}, {}
  for i = 1, math.min(#errors, M.ERRORS_MAX) do
    local err = errors[i]
    local body = field.body(err)
    causes[i] = { reason = err.type, message = body, field = err.path }
    messages[i] = err.path .. ": " .. body
  end
  local message = ("%s %s is invalid: %s"):format(qualified(kind, group), field.quote(name), M.aggregate(messages))
  return failure(422, "Invalid", message, {
    name = name ~= "" and name or nil,
    group = group ~= "" and group or nil,
    kind = kind ~= "" and kind or nil,
    causes = causes,
  })
end


--- A failure that the server has neither a reason nor a better code for.
function M.unknown(message)
  return failure(500, nil, message)
end


--- The object is larger than etcd stores: its own error, which kube-apiserver passes on.
function M.etcd_refuses()
  return M.unknown "etcdserver: request is too large"
end


--- The path is served, but not with this method.
function M.method_not_allowed()
  return failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})
end


--- A revision was asked for that has not come yet.
function M.too_large_revision(wanted, current)
  return failure(504, "Timeout", ("Timeout: Too large resource version: %d, current: %d"):format(wanted, current), {
    causes = host.json.array { { reason = "ResourceVersionTooLarge", message = "Too large resource version" } },
    retryAfterSeconds = 1,
  })
end


--- The client should come again in `seconds`.
function M.too_many_requests(message, seconds)
  return failure(429, "TooManyRequests", message, { retryAfterSeconds = seconds })
end


--- Somebody who is needed for an answer cannot be had now.
function M.unavailable(message)
  return failure(503, "ServiceUnavailable", message)
end


--- A mistake of the server itself.
function M.internal(message)
  return failure(500, "InternalError", "Internal error occurred: " .. message, {
    causes = host.json.array { { message = message } },
  })
end


--- A real server does this, the embedded one does not. `what` names it.
function M.not_implemented(what)
  return failure(501, "NotImplemented", "the embedded API server does not do this: " .. what)
end


--- The time allowed for the request is over.
function M.timeout(message)
  return failure(504, "Timeout", "Timeout: " .. message)
end


--- A request that succeeded and answers with no object (deletion). `details` as in a failure. It has no code, as the
--- server's own has none.
function M.success(details)
  return { kind = "Status", apiVersion = "v1", metadata = {}, status = "Success", details = details }
end


--- Returns true if a value is a Status.
function M.is(value)
  return type(value) == "table" and value.kind == "Status"
end


return M
