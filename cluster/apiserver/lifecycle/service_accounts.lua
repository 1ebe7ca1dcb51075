--- Objects that controllers put into each namespace: the service account "default", the authority's certificate.
---
--- Rules: kubernetes/pkg/controller/serviceaccount/serviceaccounts_controller.go,
--- kubernetes/pkg/controller/certificates/rootcacertpublisher/publisher.go.
local host = require "cluster.host"
local store = require "cluster.apiserver.store"

local M = {}

local ACCOUNT, BUNDLE = "default", "kube-root-ca.crt"
local DESCRIPTION = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints "
  .. "such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
  .. "Kubernetes clusters."
local CALLER = {
  user = { name = "system:kube-controller-manager", groups = { "system:masters", "system:authenticated" } },
  user_agent = "kube-controller-manager",
}


local function path(namespace, plural, name)
  return "/api/v1/namespaces/" .. namespace .. "/" .. plural .. (name and "/" .. name or "")
end


local function ensure_bundle(server, namespace)
  local wanted = { ["ca.crt"] = server.settings.ca or "" }
  local res = server.registry:find("", "v1", "configmaps")
  local entry = server.store:get("configmaps", namespace, BUNDLE)
  if not entry then
    server:call("POST", path(namespace, "configmaps"), {
      metadata = { name = BUNDLE, annotations = { ["kubernetes.io/description"] = DESCRIPTION } }, data = wanted,
    }, CALLER)
    return
  end
  local object = store.object(res, entry)
  local meta = object.metadata
  local description = meta.annotations and meta.annotations["kubernetes.io/description"]
  if not host.json.equal(object.data or {}, wanted) or description == nil then
    object.data = wanted
    meta.annotations = meta.annotations or {}
    meta.annotations["kubernetes.io/description"] = DESCRIPTION
    server:call("PUT", path(namespace, "configmaps", BUNDLE), object, CALLER)
  end
end


local function ensure(server, namespace)
  local entry = server.store:get("namespaces", "", namespace)
  if not entry or entry.deleting then
    return
  end
  if not server.store:get("serviceaccounts", namespace, ACCOUNT) then
    server:call("POST", path(namespace, "serviceaccounts"), { metadata = { name = ACCOUNT } }, CALLER)
  end
  ensure_bundle(server, namespace)
end


-- The namespace that a change is a reason to look at, or nil.
local function touched(event)
  local entry = event.entry
  if event.id == "namespaces" then
    return event.type ~= "DELETED" and entry.name or nil
  elseif event.id == "serviceaccounts" and entry.name == ACCOUNT and event.type == "DELETED" then
    return entry.namespace
  elseif event.id == "configmaps" and entry.name == BUNDLE and event.type ~= "ADDED" then
    return entry.namespace
  end
end


--- Sees to all namespaces there are.
function M.ensure_all(server)
  local names = {}
  server.store:collection("namespaces"):each(nil, nil, function(entry) names[#names + 1] = entry.name end)
  for _, name in ipairs(names) do
    ensure(server, name)
  end
end


--- Begins: sees to the namespaces there are at once, to others soon after they come.
function M.start(server)
  if not server.registry:find("", "v1", "serviceaccounts") then
    return
  end
  M.ensure_all(server)
  server.store:subscribe(function(event)
    local namespace = touched(event)
    if namespace then
      host.defer(function() ensure(server, namespace) end)
    end
  end, { namespaces = true, serviceaccounts = true, configmaps = true })
end


return M
