--- Parts of pods that have requests of their own: binding, ephemeralcontainers, resize; eviction.lua has one more.
---
--- Rules: kubernetes/pkg/registry/core/pod/storage/storage.go, pkg/registry/core/pod/strategy.go.
local admission = require "cluster.apiserver.admission"
local body = require "cluster.apiserver.verbs.body"
local get = require "cluster.apiserver.verbs.get"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local options = require "cluster.apiserver.verbs.options"
local patch = require "cluster.apiserver.verbs.patch"
local resize = require "cluster.apiserver.resources.pod.resize"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local update = require "cluster.apiserver.resources.pod.update"
local update_verb = require "cluster.apiserver.verbs.update"
local write = require "cluster.apiserver.verbs.write"

local M = {}

local NONE = {}
local BINDING = body.kind("", "v1", "Binding")


-- Everything but the ephemeral containers stays as it was; labels and owners do as well.
local function prepare_ephemeral(new, old)
  local spec = host.json.copy(old.spec)
  spec.ephemeralContainers = new.spec.ephemeralContainers
  new.spec, new.status = spec, old.status
  metadata.keep(new.metadata, old.metadata)
end


local function handlers(prepare, validate)
  local function through(verb)
    return function(request)
      request.prepare, request.validate = prepare, validate
      return verb(request)
    end
  end
  return { get = get, update = through(update_verb), patch = through(patch) }
end


M.ephemeralcontainers = handlers(prepare_ephemeral, update.validate_ephemeral)
M.resize = handlers(resize.prepare, resize.validate)


--- The answer of a part that has done its work. @return integer code, string text
function M.success()
  local answer = status.success()
  answer.code = 201
  return 201, host.json.encode(answer)
end


--- The body as an object of the kind that the part takes.
--- @param settings table options of a create  @param kind table of body.kind
--- @return table|nil object, or nil and a status
function M.read(request, settings, kind)
  local object, failure = body.object(request, settings, kind)
  if not object then
    return nil, failure
  elseif object.metadata.name ~= request.name then
    return nil, status.bad_request("name in URL does not match name in " .. kind.kind .. " object")
  end
  return object
end


--- The pod of a request. @return table|nil entry, table pod; nil, nil and a status
function M.find(request)
  local entry = request.server.store:get("pods", request.namespace, request.name)
  if not entry then
    return nil, nil, status.not_found(request.res, request.name)
  end
  return entry, store.object(request.res, entry)
end


--- Admission of the object of a part. @return table|nil failure
function M.admit(request, object, group, settings)
  request.admission_view = { kind = { group = group, version = "v1", kind = object.kind }, of = function(same)
    return same
  end }
  return admission.mutating(request, "CREATE", object, nil, settings)
    or admission.validating(request, "CREATE", object, nil, settings)
end


-- Why a pod cannot go to a node, or nil.
local function binding_trouble(pod)
  if pod.metadata.deletionTimestamp then
    return ("pod %s is being deleted, cannot be assigned to a host"):format(pod.metadata.name)
  elseif pod.spec.nodeName then
    return ("pod %s is already assigned to node %q"):format(pod.metadata.name, pod.spec.nodeName)
  elseif pod.spec.schedulingGates then
    return ("pod %s has non-empty .spec.schedulingGates"):format(pod.metadata.name)
  end
end


local function set_scheduled(pod)
  local conditions = pod.status.conditions or host.json.array {}
  pod.status.conditions = conditions
  local condition = { type = "PodScheduled", status = "True", lastProbeTime = host.json.null,
    lastTransitionTime = host.timestamp() }
  for i, other in ipairs(conditions) do
    if other.type == "PodScheduled" then
      conditions[i] = condition
      return
    end
  end
  conditions[#conditions + 1] = condition
end


-- Assigns a pod of the request's namespace to the node that the binding names.
local function assign(request, name, binding, settings)
  local target = type(binding.target) == "table" and binding.target or NONE
  if (target.kind or "") ~= "" and target.kind ~= "Node" then
    return nil, status.unknown(('target.kind: Unsupported value: "%s": supported values: "Node", "<empty>"'):format(
      target.kind))
  elseif (target.name or "") == "" then
    return nil, status.unknown("target.name: Required value")
  end
  local res, storage = request.server.registry:of("v1", "Pod"), request.server.store
  local entry = storage:get(res.id, request.namespace, name)
  if not entry then
    return nil, status.not_found(res, name)
  end
  local pod = store.object(res, entry)
  local failure = M.admit(request, binding, "", settings)
  if failure then
    return nil, failure
  end
  local trouble = binding_trouble(pod)
  if trouble then
    return nil, status.conflict({ plural = "pods/binding", group = "" }, name, trouble)
  end
  pod.spec.nodeName = target.name
  set_scheduled(pod)
  if not settings.dry_run then
    local changed
    changed, failure = storage:update(res, entry, pod)
    if not changed then
      return nil, failure
    end
  end
  return M.success()
end


-- POST of a pod's part.
local function bind_part(request)
  local settings, failure = options.create(request)
  if not settings then
    return nil, failure
  end
  local binding
  binding, failure = M.read(request, settings, BINDING)
  if not binding then
    return nil, failure
  end
  return assign(request, request.name, binding, settings)
end


M.binding = { create = bind_part }


-- POST of a Binding, as it was done before pods had that part.
local function bind(request)
  local settings, failure = options.create(request)
  if not settings then
    return nil, failure
  end
  local binding
  binding, failure = body.object(request, settings)
  failure = failure or write.settle_namespace(request, binding)
  if failure then
    return nil, failure
  end
  return assign(request, binding.metadata.name or "", binding, settings)
end


--- The strategy of Bindings, which are not stored.
M.Binding = { handlers = { create = bind } }


return M
