--- A user can grant only rights that he has: checks on writes of roles and bindings.
---
--- Rules and wordings: kubernetes/pkg/registry/rbac/escalation_check.go,
--- kubernetes/pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go.
local host = require "cluster.host"
local field = require "cluster.apiserver.field"
local rules = require "cluster.apiserver.auth.rules"
local status = require "cluster.apiserver.status"

local M = {}

local GROUP = "rbac.authorization.k8s.io"


-- True for users that are not checked: administrators, and everybody if roles are not enforced.
local function is_free(ctx)
  local auth = ctx.server.auth
  return not auth or not auth:decides() or auth.is_master(ctx.request.user)
end


local function may(ctx, attributes)
  attributes.is_resource, attributes.group = true, GROUP
  return (ctx.server.auth:authorize(ctx.request.user, attributes))
end


local function confirm(object, ctx, wanted)
  local user = ctx.request.user
  local owned = ctx.server.auth.rbac:granted_to(user, ctx.namespace or "")
  local missing = rules.missing(owned.rules, wanted)
  if not missing then
    return nil
  end
  return status.forbidden(ctx.request.res, object.metadata.name,
    ("user %s (groups=%s) is attempting to grant RBAC permissions not currently held:\n%s"):format(
      field.quote(user.name), rules.quoted(user.groups or {}), table.concat(missing, "\n")))
end


-- An update that changes nothing but what garbage collection needs grants nothing.
local function same_but_metadata(object, old)
  return old ~= nil and host.json.equal(object.rules or host.json.null, old.rules or host.json.null)
    and host.json.equal(object.roleRef or host.json.null, old.roleRef or host.json.null)
    and host.json.equal(object.subjects or host.json.null, old.subjects or host.json.null)
    and host.json.equal(object.aggregationRule or host.json.null, old.aggregationRule or host.json.null)
end


--- May the asking user write this role? @param old table|nil the role it replaces
--- @return table|nil failure
function M.role(object, old, ctx)
  if is_free(ctx) or same_but_metadata(object, old) then
    return nil
  end
  local escalate = { verb = "escalate", resource = ctx.request.resource, name = ctx.request.name,
    namespace = ctx.namespace }
  if may(ctx, escalate) then
    return nil
  end
  -- An aggregated role may get any rule later.
  local wanted = type(object.rules) == "table" and object.rules or {}
  if object.aggregationRule then
    wanted = { { verbs = { "*" }, apiGroups = { "*" }, resources = { "*" } }, { verbs = { "*" },
      nonResourceURLs = { "*" } } }
    if confirm(object, ctx, wanted) then
      return status.forbidden(ctx.request.res, object.metadata.name, "must have cluster-admin privileges to use the "
        .. "aggregationRule")
    end
  end
  return confirm(object, ctx, wanted)
end


--- May the asking user write this binding? @param old table|nil the binding it replaces
--- @return table|nil failure
function M.binding(object, old, ctx)
  if is_free(ctx) or same_but_metadata(object, old) then
    return nil
  end
  local ref = object.roleRef
  local namespace = ctx.namespace or ""
  local plural = ref.kind == "ClusterRole" and "clusterroles" or "roles"
  if may(ctx, { verb = "bind", resource = plural, name = ref.name, namespace = namespace }) then
    return nil
  end
  local wanted = ctx.server.auth.rbac:rules_of(ref, namespace)
  if not wanted then
    return status.not_found(ctx.request.res, ref.name)
  end
  return confirm(object, ctx, wanted)
end


return M
