--- Operations of the garbage collector on objects, by reference: { id = of the resource, namespace, name, uid }.
local host = require "cluster.host"
local store = require "cluster.apiserver.store"

local M = {}
M.__index = M

local MERGE = "application/merge-patch+json"
local USER = {
  name = "system:serviceaccount:kube-system:generic-garbage-collector",
  groups = { "system:masters", "system:authenticated" },
}
local AGENT = "kube-controller-manager"


--- @param server table
function M.new(server)
  return setmetatable({ server = server }, M)
end


local function path_of(res, reference)
  local root = res.group == "" and "/api/" .. res.version or "/apis/" .. res.group .. "/" .. res.version
  local space = res.namespaced and "/namespaces/" .. reference.namespace or ""
  return root .. space .. "/" .. res.plural .. "/" .. reference.name
end


local function call(self, method, reference, body, content_type)
  local res = self.server.registry:by_id(reference.id)
  return self.server:call(method, path_of(res, reference), body,
    { user = USER, user_agent = AGENT, content_type = content_type })
end


--- The object of a reference as it is now; nil when it is gone or another one has its name.
function M:current(reference)
  local entry = self.server.store:get(reference.id, reference.namespace, reference.name)
  local res = self.server.registry:by_id(reference.id)
  if entry and res and entry.uid == reference.uid then
    return store.object(res, entry)
  end
end


--- Takes a finalizer out of an object, unless it has changed since.
function M:drop_finalizer(reference, object, name)
  local finalizers = host.json.array {}
  for _, finalizer in ipairs(object.metadata.finalizers or {}) do
    if finalizer ~= name then
      finalizers[#finalizers + 1] = finalizer
    end
  end
  local metadata = {
    uid = reference.uid, resourceVersion = object.metadata.resourceVersion, finalizers = finalizers,
  }
  call(self, "PATCH", reference, { metadata = metadata }, MERGE)
end


--- Takes owners with these uids out of an object's references.
function M:drop_owners(reference, object, uids)
  local other_owners = host.json.array {}
  for _, owner in ipairs(object.metadata.ownerReferences or {}) do
    if not uids[owner.uid] then
      other_owners[#other_owners + 1] = owner
    end
  end
  self:set_owners(reference, other_owners)
end


--- Deletes an object; never a later one by its name.
function M:delete(reference, policy)
  call(self, "DELETE", reference, {
    kind = "DeleteOptions", apiVersion = "v1", propagationPolicy = policy, preconditions = { uid = reference.uid },
  })
end


--- Replaces an object's owner references.
function M:set_owners(reference, owners)
  call(self, "PATCH", reference, { metadata = { uid = reference.uid, ownerReferences = owners } }, MERGE)
end


return M
