--- Namespaces: those that exist from the start, what can be created in them, and their deletion with all objects.
---
--- Rules and wordings: apiserver/pkg/admission/plugin/namespace/lifecycle,
--- kubernetes/pkg/controller/namespace/deletion, kubernetes/pkg/controlplane/controller/systemnamespaces.
local conditions = require "cluster.apiserver.lifecycle.conditions"
local finalize = require "cluster.apiserver.lifecycle.finalize"
local host = require "cluster.host"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local workqueue = require "cluster.apiserver.lifecycle.workqueue"

local M = {}
M.__index = M

local SYSTEM = { "kube-system", "kube-public", "kube-node-lease", "default" }
local IMMORTAL = { default = true, ["kube-system"] = true, ["kube-public"] = true }

local API_SERVER = { user_agent = "kube-apiserver" }
local CONTROLLER = {
  user = {
    name = "system:serviceaccount:kube-system:namespace-controller",
    groups = { "system:masters", "system:authenticated" },
  },
  user_agent = "kube-controller-manager",
}


--- @param server table
function M.new(server)
  server:subresource("namespaces", "finalize", finalize)
  local self = setmetatable({ server = server }, M)
  self.queue = workqueue.new("namespace controller", function(name) self:sync(name) end)
  return self
end


local function is_terminating(entry)
  return entry.deleting or (entry.fields ~= nil and entry.fields["status.phase"] == "Terminating")
end


local function terminating(request, object, namespace)
  local failure = status.forbidden(request.res, object.metadata.name,
    ("unable to create new content in namespace %s because it is being terminated"):format(namespace))
  failure.details.causes = host.json.array { {
    reason = "NamespaceTerminating", message = ("namespace %s is being terminated"):format(namespace),
    field = "metadata.namespace",
  } }
  return failure
end


--- Checks if `object` may be made in the namespace of the request. @return table|nil failure
function M:check_create(request, object)
  local res, namespace = request.res, request.namespace
  if not res.namespaced then
    return nil
  end
  local entry = self.server.store:get("namespaces", "", namespace)
  if not entry then
    return status.not_found({ group = "", plural = "namespaces" }, namespace)
  elseif is_terminating(entry) then
    return terminating(request, object, namespace)
  end
end


--- Checks if `object` may be deleted. @return table|nil failure
function M.check_delete(_, request, object)
  local name = object.metadata.name
  if request.res.id == "namespaces" and IMMORTAL[name] then
    return status.forbidden(request.res, name, "this namespace may not be deleted")
  end
end


-- Descriptions of what can be in a namespace, one a resource, by id.
local function namespaced(registry)
  local list, seen = {}, {}
  for _, res in ipairs(registry:all()) do
    if res.namespaced and not seen[res.id] then
      seen[res.id] = true
      list[#list + 1] = res
    end
  end
  return list
end


local function path_of(res, namespace)
  local root = res.group == "" and "/api/" .. res.version or "/apis/" .. res.group .. "/" .. res.version
  return ("%s/namespaces/%s/%s"):format(root, namespace, res.plural)
end


-- Deletes what is of one resource. Returns how much is left; its finalizers are counted in `finalizers`.
local function empty(self, res, namespace, finalizers)
  local found = self.server.store:collection(res.id)
  if found:size(namespace) == 0 then
    return 0
  end
  self.server:call("DELETE", path_of(res, namespace), { propagationPolicy = "Background" }, CONTROLLER)
  local entries = {}
  found:each(namespace, nil, function(entry)
    entries[#entries + 1] = entry
  end)
  for _, entry in ipairs(entries) do
    for _, finalizer in ipairs(store.object(res, entry).metadata.finalizers or {}) do
      finalizers[finalizer] = (finalizers[finalizer] or 0) + 1
    end
    host.give_way()
  end
  return found:size(namespace)
end


-- Deletes all there is. Pods go first: others wait until they have gone.
-- @return table left name of the resource, as messages have it → count
-- @return table finalizers name → count
local function empty_all(self, namespace)
  local remaining, finalizers = {}, {}
  local function go(res)
    local count = empty(self, res, namespace, finalizers)
    if count > 0 then
      remaining[res.plural .. "." .. res.group] = count
    end
    return count
  end
  local pods = self.server.registry:find("", "v1", "pods")
  if pods and go(pods) > 0 then
    return remaining, finalizers
  end
  for _, res in ipairs(namespaced(self.server.registry)) do
    go(res)
  end
  return remaining, finalizers
end


local function write_conditions(self, object, remaining, finalizers)
  local name = object.metadata.name
  if conditions.update(object.status, remaining, finalizers) then
    self.server:call("PUT", "/api/v1/namespaces/" .. name .. "/status", object, CONTROLLER)
  end
end


local function release(self, name)
  local _, object = self.server:call("GET", "/api/v1/namespaces/" .. name, nil, CONTROLLER)
  local finalizers = host.json.array {}
  for _, finalizer in ipairs(object.spec and object.spec.finalizers or {}) do
    if finalizer ~= "kubernetes" then
      finalizers[#finalizers + 1] = finalizer
    end
  end
  if object.spec then
    object.spec.finalizers = finalizers
    self.server:call("PUT", "/api/v1/namespaces/" .. name .. "/finalize", object, CONTROLLER)
  end
end


local function holds(object)
  for _, finalizer in ipairs(object.spec.finalizers or {}) do
    if finalizer == "kubernetes" then
      return true
    end
  end
  return false
end


--- Takes the deletion of a namespace as far as it goes now.
function M:sync(name)
  local res = self.server.registry:find("", "v1", "namespaces")
  local entry = self.server.store:get("namespaces", "", name)
  if not entry or not entry.deleting then
    return
  end
  local object = store.object(res, entry)
  if not holds(object) then
    return
  end
  local remaining, finalizers = empty_all(self, name)
  write_conditions(self, object, remaining, finalizers)
  if next(remaining) == nil then
    release(self, name)
  end
end


-- A namespace that is to go is looked at when it changes, and when something in it has gone.
local function on_change(self, event)
  local entry = event.entry
  if event.id == "namespaces" then
    if entry.deleting and event.type ~= "DELETED" then
      self.queue:add(entry.name, entry.name)
    end
  elseif event.type == "DELETED" and entry.namespace ~= "" then
    local space = self.server.store:get("namespaces", "", entry.namespace)
    if space and space.deleting then
      self.queue:add(entry.namespace, entry.namespace)
    end
  end
end


--- Makes the namespaces that are always there, and, with controllers, sees to those that are to go.
function M:start()
  local server = self.server
  local res = server.registry:find("", "v1", "namespaces")
  if not res then
    return
  end
  for _, name in ipairs(SYSTEM) do
    if not server.store:get("namespaces", "", name) then
      server:call("POST", "/api/v1/namespaces", { metadata = { name = name } }, API_SERVER)
    end
  end
  if server.settings.controllers ~= false then
    server.store:subscribe(function(event) on_change(self, event) end)
    server.store:collection("namespaces"):each(nil, nil, function(entry)
      if entry.deleting then
        self.queue:add(entry.name, entry.name)
      end
    end)
  end
end


return M
