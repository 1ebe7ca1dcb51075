--- How a patch fails: the functions of this folder raise a Status, `M.try` returns it to the caller.
local status = require "cluster.apiserver.status"

local M = {}


--- A Status that upstream makes without a constructor of its own: 422 for a patch that is well formed
--- and does not fit, 500 for errors it does not expect. `reason` may be nil.
function M.status(code, reason, message, details)
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


--- Raises 400 with `message`.
function M.bad_request(message)
  error(status.bad_request(message), 0)
end


--- Raises 422 for a patch that cannot be done. The server tells no more than this.
--- Rule: apimachinery/pkg/api/errors NewGenericServerResponse, for 422 without an object.
function M.unprocessable()
  error(M.status(422, "Invalid", "the server rejected our request due to an error in our request", {}), 0)
end


--- Raises 500 with `message`, as upstream does for an error that is no API error.
function M.unexpected(message)
  error(M.status(500, nil, message), 0)
end


--- Calls `fn(...)`. Returns what it returns, or nil and the Status that it raised.
function M.try(fn, ...)
  local ok, result = pcall(fn, ...)
  if ok then
    return result
  end
  if type(result) ~= "table" or result.kind ~= "Status" then
    error(result, 0)
  end
  return nil, result
end


return M
