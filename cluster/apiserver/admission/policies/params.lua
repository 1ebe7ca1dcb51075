--- The parameters of a binding: its policy is evaluated once for each of these objects.
---
--- Rules and wordings: apiserver/pkg/admission/plugin/policy/generic/{policy_dispatcher,policy_source}.go.
local label_selector = require "cluster.apiserver.selector.label_selector"
local store = require "cluster.apiserver.store"

local M = {}

local NONE = {}
M.NONE = NONE


--- The description of a paramKind. @return table|nil res; or nil and why there is none
function M.kind(param_kind, registry)
  local res = registry:of(param_kind.apiVersion, param_kind.kind)
  if not res then
    local group, version = param_kind.apiVersion:match "^(.-)/?([^/]*)$"
    return nil, ("failed to find resource referenced by paramKind: '%s/%s, Kind=%s'"):format(
      group, version, param_kind.kind)
  end
  return res
end


local function by_selector(res, storage, namespace, selector)
  local list = {}
  storage:collection(res.id):each(namespace, nil, function(entry)
    if label_selector.match(selector, entry.labels) then
      list[#list + 1] = store.object(res, entry)
    end
  end)
  return list
end


local function find(res, ref, attributes)
  local storage, namespace = attributes.server.store, ""
  if res.namespaced then
    namespace = (ref.namespace or "") ~= "" and ref.namespace or attributes.namespace
    if namespace == "" then
      return nil, "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
    end
  elseif (ref.namespace or "") ~= "" then
    return nil, "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
  end
  if (ref.name or "") ~= "" then
    local entry = storage:get(res.id, namespace, ref.name)
    return { entry and store.object(res, entry) }
  end
  return by_selector(res, storage, res.namespaced and namespace or nil, ref.selector)
end


--- @param res table|nil of the policy's paramKind; nil: it has none
--- @param ref table|nil paramRef of the binding
--- @return list|nil of objects, or of M.NONE alone: evaluate once without a parameter; or nil and the reason
function M.collect(res, ref, attributes)
  if not res or not ref then
    return { NONE }
  end
  local found, why = find(res, ref, attributes)
  if found and #found == 0 and ref.parameterNotFoundAction == "Deny" then
    return nil, "no params found for policy binding with `Deny` parameterNotFoundAction"
  end
  return found, why
end


return M
