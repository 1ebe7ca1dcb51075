--- ConfigMap kube-system/extension-apiserver-authentication: which authority a server of an extension can trust when it
--- is shown a client's certificate.
---
--- It has no entries about request headers, because this server passes no request on to other API servers.
--- Rules: kubernetes/pkg/controlplane/controller/clusterauthenticationtrust/cluster_authentication_trust_controller.go.
local host = require "cluster.host"
local store = require "cluster.apiserver.store"

local M = {}

local NAMESPACE, NAME, KEY = "kube-system", "extension-apiserver-authentication", "client-ca-file"
local PATH = "/api/v1/namespaces/" .. NAMESPACE .. "/configmaps"
local CALLER = { user_agent = "kube-apiserver" }


--- Makes the ConfigMap, or adds the authority's certificate to those that it has. Does nothing while the authority is
--- unknown.
function M.ensure(server)
  local ca = server.settings.ca
  local res = server.registry:find("", "v1", "configmaps")
  if not ca or not res then
    return
  end
  local entry = server.store:get("configmaps", NAMESPACE, NAME)
  if not entry then
    server:call("POST", PATH, { metadata = { name = NAME }, data = { [KEY] = ca } }, CALLER)
    return
  end
  local object = store.object(res, entry)
  object.data = object.data or {}
  local known = object.data[KEY] or ""
  if not known:find(ca, 1, true) then
    object.data[KEY] = known .. ca
    server:call("PUT", PATH .. "/" .. NAME, object, CALLER)
  end
end


--- Begins: the ConfigMap is there from now on, also after somebody has deleted it.
function M.start(server)
  M.ensure(server)
  server.store:subscribe(function(event)
    local entry = event.entry
    if event.type == "DELETED" and entry.name == NAME and entry.namespace == NAMESPACE then
      host.defer(function() M.ensure(server) end)
    end
  end, { configmaps = true })
end


return M
