--- Gives the names in expressions their values, for one write.
---
--- Rules: apiserver/pkg/admission/plugin/cel/{activation,condition}.go.
local authorization = require "cluster.cel.lib.authorization"
local cel = require "cluster.cel"
local expressions = require "cluster.apiserver.admission.expressions"
local host = require "cluster.host"
local match = require "cluster.apiserver.admission.match"

local M = {}

local null = host.json.null
local META = { "name", "generateName", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
  "deletionGracePeriodSeconds", "labels", "annotations", "finalizers" }


local function value_of(object)
  return object == nil and null or cel.from_json(object)
end


local function kind_of(kind)
  return { group = kind.group, version = kind.version, kind = kind.kind }
end


local function resource_of(res)
  return { group = res.group, version = res.version, resource = res.plural }
end


local function not_empty(text)
  return text ~= "" and text or nil
end


local function user_of(user)
  return {
    username = not_empty(user.name or ""), uid = not_empty(user.uid or ""),
    groups = user.groups and #user.groups > 0 and host.json.array(host.json.copy(user.groups)) or nil,
    extra = user.extra and next(user.extra) and user.extra or nil,
  }
end


local function options_of(attributes)
  local manager = attributes.manager
  return {
    kind = attributes.options, apiVersion = "meta.k8s.io/v1", dryRun = attributes.dry_run and host.json.array { "All" }
      or nil, fieldManager = manager and manager ~= "" and manager or nil,
    fieldValidation = attributes.settings and attributes.settings.validation,
  }
end


--- The variable `request`, as JSON. @param res table the resource as which the write matched
function M.request(attributes, res)
  local kind = attributes.kind
  local matched = res == attributes.res and kind or { group = res.group, version = res.version, kind = res.kind }
  local part = not_empty(attributes.subresource)
  return {
    kind = kind_of(matched), resource = resource_of(res), subResource = part, requestKind = kind_of(kind),
    requestResource = resource_of(attributes.res), requestSubResource = part,
    name = not_empty(attributes.name), namespace = not_empty(attributes.namespace), operation = attributes.operation,
    userInfo = user_of(attributes.user), dryRun = attributes.dry_run, options = options_of(attributes),
  }
end


local function namespace_of(attributes)
  local found = attributes.res.id ~= "namespaces" and attributes.namespace ~= "" and match.namespace(attributes)
  if not found then
    return null
  end
  local meta = {}
  for _, name in ipairs(META) do
    meta[name] = found.metadata[name]
  end
  return (cel.from_json({ metadata = meta, spec = found.spec, status = found.status }, expressions.namespace_type))
end


--- The bindings of a write that matched as `res`.
function M.bindings(attributes, res)
  local auth = attributes.server.auth
  local authorizer = authorization.new(attributes.user, function(user, wanted_access)
    return auth:authorize(user, wanted_access)
  end)
  return {
    object = value_of(match.version_of(attributes.object, res, attributes)),
    oldObject = value_of(match.version_of(attributes.old, res, attributes)),
    request = cel.from_json(M.request(attributes, res), expressions.request_type),
    namespaceObject = namespace_of(attributes), authorizer = authorizer, params = null,
    ["authorizer.requestResource"] = authorization.resource(authorizer, {
      group = attributes.res.group, resource = attributes.res.plural, subresource = attributes.subresource,
      namespace = attributes.namespace, name = attributes.name,
    }),
  }
end


--- The value of an object that is a parameter.
M.value = value_of


return M
