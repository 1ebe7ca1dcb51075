--- Checks that a CRD of a group that belongs to Kubernetes was approved there: an annotation says so.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apihelpers/helpers.go,
--- pkg/controller/apiapproval/apiapproval_controller.go.
local conditions = require "cluster.apiserver.crd.conditions"
local formats = require "cluster.apiserver.schema.formats"

local M = {}

--- The annotation.
M.ANNOTATION = "api-approved.kubernetes.io"

local CONDITION = "KubernetesAPIApprovalPolicyConformant"
local SEE = "see https://github.com/kubernetes/enhancements/pull/1111"

local MESSAGES = {
  missing = ("protected groups must have approval annotation %q, %s"):format(M.ANNOTATION, SEE),
  invalid = ("protected groups must have approval annotation %q with either a URL or a reason starting with "
    .. '"unapproved", %s'):format(M.ANNOTATION, SEE),
}

-- State → status and reason of the condition.
local WORDS = {
  missing = { "False", "MissingAnnotation" }, invalid = { "False", "InvalidAnnotation" },
  bypassed = { "False", "UnapprovedAnnotation" }, approved = { "True", "ApprovedAnnotation" },
}


--- Returns true if CRDs of that group need an approval.
function M.is_needed(group)
  return group == "k8s.io" or group == "kubernetes.io" or group:find "%.k8s%.io$" ~= nil
    or group:find "%.kubernetes%.io$" ~= nil
end


--- "missing", "bypassed", "approved" or "invalid", and the message about it.
function M.of(crd)
  local note = (crd.metadata.annotations or {})[M.ANNOTATION] or ""
  if note == "" then
    return "missing", MESSAGES.missing
  elseif note:find "^unapproved" then
    return "bypassed", ("not approved: %q"):format(note)
  elseif formats.test "uri" (note) and note:find "^%a[%w+.-]*://[^/]" then
    return "approved", "approved in " .. note
  end
  return "invalid", MESSAGES.invalid
end


--- Sets the condition of a CRD that needs an approval. @return boolean whether anything has changed
function M.settle(crd)
  if not M.is_needed(crd.spec.group) then
    return false
  end
  local state, message = M.of(crd)
  local value, reason = WORDS[state][1], WORDS[state][2]
  local known = conditions.find(crd, CONDITION)
  if known and known.status == value and known.reason == reason and known.message == message then
    return false
  end
  conditions.set(crd, CONDITION, value, reason, message)
  return true
end


return M
