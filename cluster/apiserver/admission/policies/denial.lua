--- The answers to writes that policies refuse.
---
--- Rules and wordings: apiserver/pkg/admission/plugin/policy/validating/dispatcher.go,
--- plugin/policy/generic/policy_dispatcher.go.
local host = require "cluster.host"
local status = require "cluster.apiserver.status"

local M = {}

local CODES = { Forbidden = 403, Unauthorized = 401, RequestEntityTooLarge = 413 }


local function forbidden(attributes, message)
  return status.forbidden(attributes.res, attributes.name ~= "" and attributes.name or "Unknown", message)
end


--- @param denied table { policy, binding or nil, message, reason or nil }
function M.of_validation(attributes, denied)
  local with = denied.binding and (" with binding '%s'"):format(denied.binding.metadata.name) or ""
  local message = ("ValidatingAdmissionPolicy '%s'%s denied request: %s"):format(denied.policy.name, with,
    denied.message)
  local failure = forbidden(attributes, message)
  failure.reason = denied.reason or "Invalid"
  failure.code = CODES[failure.reason] or 422
  failure.details.causes = host.json.array { { message = message } }
  return failure
end


local function mutation_message(denied)
  if denied.binding then
    return ("policy '%s' with binding '%s' denied request: %s"):format(denied.policy.name,
      denied.binding.metadata.name, denied.message)
  end
  return ('policy "%s" denied request: %s'):format(denied.policy.name, denied.message)
end


--- @param list table of the same, one at least
function M.of_mutations(attributes, list)
  local failure, causes = forbidden(attributes, ""), host.json.array {}
  for i, denied in ipairs(list) do
    causes[i] = { message = mutation_message(denied) }
  end
  failure.message, failure.reason = causes[1].message, list[1].reason or failure.reason
  failure.details.causes = causes
  return failure
end


return M
