--- Admission: the two points that each write passes, where plugins may change or refuse it.
---
---   mutating     once the object is decoded and has its defaults, before the kind prepares and checks it
---   validating   once the kind found it right, before it is charged to quotas and stored
---
--- A deletion passes both at once; a deletecollection passes them with each of its objects. A patch or an apply is a
--- CREATE or an UPDATE. Objects of the group admissionregistration.k8s.io pass without any plugin being asked.
---
--- A plugin may wait for an answer from outside: the request is one of the threads that the loop runs.
---
--- Each point is a list of plugins, asked in their order; the first that refuses ends it. A plugin is
---   watches                    the id of a resource: it is only asked when an object of it is stored
---   check(attributes)          returns nil, or a status that refuses the write. A mutating one changes
---                              attributes.object in place
---
--- Attributes of a write:
---   operation     "CREATE", "UPDATE", "DELETE" or "CONNECT"
---   object        nil for DELETE; old: the object before, nil for CREATE
---   options       the kind of options, "CreateOptions" …; dry_run, manager, settings: the parsed options of the verb
---   kind          { group, version, kind } of the object
---   res           the resource's description (group, version, plural, kind, namespaced); subresource: "" for none
---   name, namespace   "" for none   user: { name, groups, uid, extra }
---   request, server
---
--- A part whose objects are of another kind than its resource, as a Scale is, says so beforehand:
--- request.admission_view = { kind = { group, version, kind }, of = function(object) → what plugins see }. No plugin is
--- asked about a request with `skips_admission`.
---
--- Rules: apiserver/pkg/endpoints/handlers/{create,update,patch,delete}.go, apiserver/pkg/registry/rest/create.go,
--- apiserver/pkg/admission/plugin/webhook/predicates/rules (the exempt group).
local later = require "cluster.later"
local mutations = later.module "cluster.apiserver.admission.policies.mutations"
local policies = later.module "cluster.apiserver.admission.policies"
local webhooks = later.module "cluster.apiserver.admission.webhooks"

local M = {}

local EXEMPT <const> = "admissionregistration.k8s.io"
local OPTIONS = { CREATE = "CreateOptions", UPDATE = "UpdateOptions", DELETE = "DeleteOptions" }
local NONE = {}

local function plugin(watched, check)
  return { watches = watched .. "." .. EXEMPT, check = check }
end


-- Their modules are loaded when they are first asked: most servers have no object that one acts by.
M.plugins = {
  mutating = {
    plugin("mutatingadmissionpolicybindings", function(attributes) return mutations.first(attributes) end),
    plugin("mutatingwebhookconfigurations", function(attributes) return webhooks.mutating(attributes) end),
    plugin("mutatingadmissionpolicybindings", function(attributes) return mutations.again(attributes) end),
  },
  validating = {
    plugin("validatingadmissionpolicybindings", function(attributes) return policies.check(attributes) end),
    plugin("validatingwebhookconfigurations", function(attributes) return webhooks.validating(attributes) end),
  },
}


local function is_active(one, server)
  local watched = server.store.collections[one.watches]
  return watched and watched:size() > 0
end


--- The attributes of a write.
--- @param settings table the options of the verb, as options.lua has them
function M.attributes(request, operation, object, old, settings)
  local res, meta, view = request.res, (object or old or NONE).metadata or NONE, request.admission_view
  -- The deletions of a deletecollection have no name, as on the real server.
  local name = request.name or object and meta.name or ""
  if view then
    object, old = object and view.of(object), old and view.of(old)
  end
  return {
    operation = operation, object = object, old = old, settings = settings, options = OPTIONS[operation],
    dry_run = settings.dry_run == true, manager = settings.manager,
    kind = view and view.kind or { group = res.group, version = res.version, kind = res.kind },
    res = res, subresource = request.subresource or "", name = name,
    namespace = res.namespaced and (request.namespace or meta.namespace) or res.id == "namespaces" and meta.name or "",
    user = request.user, request = request, server = request.server,
  }
end


local function pass(plugins, request, operation, object, old, settings)
  local attributes
  for _, one in ipairs(plugins) do
    if is_active(one, request.server) and request.res.group ~= EXEMPT and not request.skips_admission then
      attributes = attributes or M.attributes(request, operation, object, old, settings)
      local failure = one.check(attributes)
      if failure then
        return failure
      end
    end
  end
end


--- Before an object is prepared and checked. `object` may be changed in place.
--- @return table|nil failure a status
function M.mutating(request, operation, object, old, settings)
  return pass(M.plugins.mutating, request, operation, object, old, settings)
end


--- After an object was found right. @return table|nil failure a status
function M.validating(request, operation, object, old, settings)
  return pass(M.plugins.validating, request, operation, object, old, settings)
end


--- Before an object is deleted, or marked for it. @return table|nil failure a status
function M.deleting(request, old, settings)
  return M.mutating(request, "DELETE", nil, old, settings) or M.validating(request, "DELETE", nil, old, settings)
end


return M
