--- Review kinds: a create is answered, and nothing is stored.
---
--- Rules and wordings: kubernetes/pkg/registry/authorization/*/rest.go, kubernetes/pkg/registry/authentication/*/*.go,
--- kubernetes/pkg/apis/authorization/validation/validation.go.
local builtin = require "cluster.apiserver.schema.builtin"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local service_account_tokens = require "cluster.apiserver.auth.service_account_tokens"
local status = require "cluster.apiserver.status"
local typed = require "cluster.apiserver.schema.typed"

local AUTHORIZATION = "authorization.k8s.io"
local NULL = host.json.null


local function not_null(value)
  return type(value) == "table" and value or nil
end


-- nonResourceAttributes, as messages show them.
local function attributes_text(attributes)
  return attributes and { Path = attributes.path or "", Verb = attributes.verb or "" } or NULL
end


local function one_kind(spec)
  local resource, other = not_null(spec.resourceAttributes), not_null(spec.nonResourceAttributes)
  if resource and other then
    return field.invalid("spec.nonResourceAttributes", attributes_text(other),
      "cannot be specified in combination with resourceAttributes")
  elseif not resource and not other then
    return field.invalid("spec.resourceAttributes", NULL,
      "exactly one of nonResourceAttributes or resourceAttributes must be specified")
  end
end


local function check_subject(spec)
  if (spec.user or "") == "" and not (not_null(spec.groups) and spec.groups[1]) then
    return field.invalid("spec.user", spec.user or "", "at least one of user or group must be specified")
  end
end


-- A review has no metadata of its own. `allowed` is the one field that may be there.
local function check_metadata(object, allowed, detail)
  for key in pairs(object.metadata) do
    if key ~= "managedFields" and key ~= allowed then
      return field.invalid("metadata", object.metadata, detail)
    end
  end
end


local function check_namespace(object)
  local spec = object.spec
  local resource = not_null(spec.resourceAttributes)
  if resource and (resource.namespace or "") ~= (object.metadata.namespace or "") then
    return field.invalid("spec.resourceAttributes.namespace", resource.namespace or "", "must match metadata.namespace")
  elseif not_null(spec.nonResourceAttributes) then
    return field.invalid("spec.nonResourceAttributes", attributes_text(spec.nonResourceAttributes),
      "disallowed on this kind of request")
  end
end


local function refuse(...)
  local errors = {}
  for i = 1, select("#", ...) do
    errors[#errors + 1] = (select(i, ...))
  end
  if errors[1] then
    local failure = status.invalid(AUTHORIZATION, "", "", errors)
    failure.details.kind = nil
    return failure
  end
end


-- The attributes that a review asks about, in the form that requests have.
local function attributes_of(spec)
  local resource = not_null(spec.resourceAttributes)
  if not resource then
    local other = spec.nonResourceAttributes
    return { is_resource = false, verb = other.verb or "", path = other.path or "" }
  end
  return {
    is_resource = true, verb = resource.verb or "", group = resource.group or "", version = resource.version,
    resource = resource.resource or "", subresource = resource.subresource, name = resource.name,
    namespace = resource.namespace,
  }
end


local function answer(request, object, user)
  local allowed, reason = request.server.auth:authorize(user, attributes_of(object.spec))
  object.status = { allowed = allowed, reason = reason ~= "" and reason or nil }
  return object
end


local function subject_of(spec)
  return { name = spec.user or "", uid = spec.uid, groups = not_null(spec.groups) or {}, extra = spec.extra }
end


local function self_access(object, request)
  local failure = refuse(one_kind(object.spec), check_metadata(object, nil, "must be empty"))
  if failure then
    return nil, failure
  end
  return answer(request, object, request.user)
end


local function access(object, request)
  local failure = refuse(one_kind(object.spec), check_subject(object.spec),
    check_metadata(object, nil, "must be empty"))
  if failure then
    return nil, failure
  end
  return answer(request, object, subject_of(object.spec))
end


local function local_access(object, request)
  local failure = refuse(one_kind(object.spec), check_subject(object.spec),
    check_metadata(object, "namespace", "must be empty except for namespace"), check_namespace(object))
  if failure then
    return nil, failure
  end
  return answer(request, object, subject_of(object.spec))
end


local function list_or_nil(list)
  return list and list[1] and list or nil
end


local EVERYTHING = {
  { verbs = { "*" }, apiGroups = { "*" }, resources = { "*" } }, { verbs = { "*" }, nonResourceURLs = { "*" } },
}


local function self_rules(object, request)
  local namespace = object.spec.namespace or ""
  if namespace == "" then
    return nil, status.bad_request("no namespace on request")
  end
  local auth = request.server.auth
  local granted = auth:decides() and auth.rbac:granted_to(request.user, namespace)
    or { rules = EVERYTHING, problems = {} }
  local resource_rules, other_rules = host.json.array {}, host.json.array {}
  for _, rule in ipairs(granted.rules) do
    if list_or_nil(rule.resources) then
      resource_rules[#resource_rules + 1] = {
        verbs = rule.verbs, apiGroups = rule.apiGroups, resources = rule.resources,
        resourceNames = list_or_nil(rule.resourceNames),
      }
    end
    if list_or_nil(rule.nonResourceURLs) then
      other_rules[#other_rules + 1] = { verbs = rule.verbs, nonResourceURLs = rule.nonResourceURLs }
    end
  end
  return {
    kind = object.kind, apiVersion = object.apiVersion, metadata = {}, spec = {},
    status = {
      resourceRules = resource_rules, nonResourceRules = other_rules, incomplete = false,
      evaluationError = granted.problems[1] and table.concat(granted.problems, ", ") or nil,
    },
  }
end


local function info_of(user)
  return {
    username = user.name ~= "" and user.name or nil, uid = user.uid, extra = user.extra,
    groups = list_or_nil(user.groups) and host.json.array(user.groups),
  }
end


local function self_subject(object, request)
  return {
    kind = object.kind, apiVersion = object.apiVersion, metadata = { creationTimestamp = host.timestamp() },
    status = { userInfo = info_of(request.user) },
  }
end


local function token(object, request)
  local spec = object.spec
  if (spec.token or "") == "" then
    return nil, status.bad_request("token is required for TokenReview in authentication")
  end
  local audiences = list_or_nil(spec.audiences) or { service_account_tokens.ISSUER }
  local user, found = request.server.auth:user_of(spec.token, audiences)
  if user then
    object.status = { authenticated = true, user = info_of(user), audiences = found }
  else
    local why = found and ("[invalid bearer token, %s]"):format(found) or "invalid bearer token"
    object.status = { user = {}, error = why }
  end
  return object
end


-- The full name of the definition of a kind's spec.
local function spec_type(res)
  for _, known in ipairs(builtin.record(builtin.name_of(res.group, res.version, res.kind)).fields) do
    if known.name == "spec" then
      return known.type.ref
    end
  end
end


-- The spec of a review in the form of its Go type, so that null, and what says nothing, is not there. One that is
-- missing asks as an empty one does.
local function with_spec(review)
  return function(object, request)
    local spec = object.spec
    object.spec = typed.of(spec_type(request.res))((spec == nil or spec == host.json.null) and {} or spec)
    return review(object, request)
  end
end


local function strategy(review)
  return { spec_changed = false, review = review }
end


--- The strategies of the kinds, whose objects are answered by `review`.
return {
  SelfSubjectReview = strategy(self_subject),
  TokenReview = strategy(with_spec(token)),
  LocalSubjectAccessReview = strategy(with_spec(local_access)),
  SelfSubjectAccessReview = strategy(with_spec(self_access)),
  SelfSubjectRulesReview = strategy(with_spec(self_rules)),
  SubjectAccessReview = strategy(with_spec(access)),
}
