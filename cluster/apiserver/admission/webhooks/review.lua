--- Makes the AdmissionReview for a webhook, and reads its answer.
---
--- Rules and wordings: apiserver/pkg/admission/plugin/webhook/request/admissionreview.go, errors/statuserror.go.
local activation = require "cluster.apiserver.admission.policies.activation"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local match = require "cluster.apiserver.admission.match"

local M = {}

local GROUP <const> = "admission.k8s.io"
local KNOWN = { v1 = true, v1beta1 = true }
local null = host.json.null


--- A review for a hook that matched as `res`.
--- @return table|nil review, or nil and why there is none
function M.new(hook, res, attributes)
  local version
  for _, candidate in ipairs(hook.spec.admissionReviewVersions) do
    version = version or KNOWN[candidate] and candidate or nil
  end
  if not version then
    return nil, "could not create admission objects: "
      .. "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
  end
  local request = activation.request(attributes, res)
  request.uid = host.uuid()
  request.object = match.version_of(attributes.object, res, attributes) or null
  request.oldObject = match.version_of(attributes.old, res, attributes) or null
  request.options = attributes.options and request.options or null
  return { kind = "AdmissionReview", apiVersion = GROUP .. "/" .. version, request = request }
end


local function not_null(value)
  return value ~= nil and value ~= null and value or nil
end


-- A patch comes with its type, and only from a mutating webhook.
local function check_patch(response, is_mutating)
  local patch, kind = not_null(response.patch), not_null(response.patchType)
  if not is_mutating then
    return patch and patch ~= "" and "validating webhook may not return response.patch"
      or kind and "validating webhook may not return response.patchType" or nil
  elseif patch and patch ~= "" and not kind then
    return "webhook returned response.patch but not response.patchType"
  elseif kind and (patch or "") == "" then
    return "webhook returned response.patchType but not response.patch"
  elseif kind == "" then
    return 'webhook returned invalid response.patchType of ""'
  end
end


local function check_strict(review, answer, response, is_mutating)
  if response.uid ~= review.request.uid then
    return ("expected response.uid=%s, got %s"):format(field.quote(review.request.uid), field.quote(response.uid or ""))
  end
  local group, version = (answer.apiVersion or ""):match "^(.-)/?([^/]*)$"
  local kind = answer.kind or ""
  if group ~= GROUP or version ~= "v1" or kind ~= "AdmissionReview" then
    return ("expected webhook response of %s/v1, Kind=AdmissionReview, got %s/%s, Kind=%s"):format(GROUP, group,
      version, kind)
  end
  return check_patch(response, is_mutating)
end


-- True if a field that is read has the wrong type.
local function mistyped(response)
  local function is(name, type_name)
    return not_null(response[name]) == nil or type(response[name]) == type_name
  end
  local texts = is("uid", "string") and is("patch", "string") and is("patchType", "string")
  return not (texts and is("allowed", "boolean") and is("status", "table") and is("warnings", "table")
    and is("auditAnnotations", "table"))
end


--- Reads an answer.
--- @param text string the body
--- @return table|nil response { allowed =, status =, patch = (its bytes), warnings =, auditAnnotations = }, or nil and
---   why it cannot be taken
function M.read(text, review, is_mutating)
  local answer, why = host.json.decode(text)
  if type(answer) ~= "table" then
    return nil, "failed to call webhook: couldn't get version/kind; json parse error: " .. (why or "it is no object")
  end
  local response = not_null(answer.response)
  if response == nil then
    return nil, "received invalid webhook response: webhook response was absent"
  elseif type(response) ~= "table" or mistyped(response) then
    return nil, "failed to call webhook: a field of the response has the wrong type"
  end
  local is_strict = review.apiVersion == GROUP .. "/v1"
  why = is_strict and check_strict(review, answer, response, is_mutating)
  if why then
    return nil, "received invalid webhook response: " .. why
  end
  local patch = is_mutating and not_null(response.patch) or ""
  local bytes = host.base64.decode(patch)
  if not bytes then
    return nil, "failed to call webhook: response.patch is no base64"
  end
  return {
    allowed = response.allowed == true, status = not_null(response.status), patch = bytes,
    patch_type = is_strict and not_null(response.patchType) or "JSONPatch",
    warnings = not_null(response.warnings) or {}, annotations = not_null(response.auditAnnotations) or {},
  }
end


--- The status of a request that a webhook denied. @param name string the webhook's  @param result table|nil its status
function M.denial(name, result)
  result = result or {}
  local message, reason = not_null(result.message) or "", not_null(result.reason) or ""
  local code = math.tointeger(not_null(result.code)) or 0
  local why = message ~= "" and ": " .. message or reason ~= "" and ": " .. reason or " without explanation"
  return {
    kind = "Status", apiVersion = "v1", metadata = {}, status = "Failure", reason = reason ~= "" and reason or nil,
    message = ("admission webhook %s denied the request%s"):format(field.quote(name), why),
    details = not_null(result.details), code = code >= 400 and code or 400,
  }
end


return M
