--- The scale of an object that has replicas: read, replaced and patched as an autoscaling/v1 Scale.
---
--- Rules: kubernetes/pkg/registry/apps/deployment/storage/storage.go,
--- apiextensions-apiserver/pkg/registry/customresource/etcd.go.
local admission = require "cluster.apiserver.admission"
local age = require "cluster.apiserver.tables.age"
local apply = require "cluster.apiserver.verbs.apply"
local body = require "cluster.apiserver.verbs.body"
local builtin = require "cluster.apiserver.schema.builtin"
local change = require "cluster.apiserver.verbs.change"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local managers = require "cluster.apiserver.apply"
local options = require "cluster.apiserver.verbs.options"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local unstructured = require "cluster.apiserver.unstructured"
local versioned_storage = require "cluster.apiserver.versioned_storage"
local write = require "cluster.apiserver.verbs.write"

local M = {}

-- The number of replicas, for patches, of a Scale that names none.
local NONE = -0x80000000

-- The description of Scale as a resource, for code that reads bodies and patches.
local SCALE = {
  group = "autoscaling", version = "v1", api_version = "autoscaling/v1", kind = "Scale", plural = "scales",
  id = "scales", builtin = true, namespaced = true, strategy = {}, schema = builtin.of("autoscaling", "v1", "Scale"),
}

local function cells(scale, now)
  return { scale.metadata.name, scale.spec.replicas or 0, scale.status.replicas or 0, age.of(scale, now) }
end

-- Scales as rows of tables: two handlers of the real server describe the same columns.
local PRINTED = {
  builtin = "Name:string/- Desired:integer Available:integer Age",
  custom = "Name Desired:integer Available:integer Age:date",
}
for name, columns in pairs(PRINTED) do
  PRINTED[name] = {
    api_version = SCALE.api_version, kind = SCALE.kind, strategy = { columns = columns, cells = cells },
  }
end


local function at(object, path)
  for key in path:gmatch("[^.]+") do
    if type(object) ~= "table" then
      return nil
    end
    object = object[key]
  end
  return object
end


local function put(object, path, value)
  local before, last = path:match("^(.-)%.?([^.]+)$")
  for key in before:gmatch("[^.]+") do
    object[key] = object[key] or {}
    object = object[key]
  end
  object[last] = value
end


local function selector_of(object, selector)
  if type(selector) == "function" then
    return selector(object)
  end
  return selector and at(object, selector) or nil
end


-- Why an object cannot have a Scale, or nil: a CRD may have been changed, so that its paths lead to something else.
local function mistyped(res, object)
  local paths = res.subresources.scale
  local _, why = unstructured.find(object, paths.spec, "int64")
  if not why then
    _, why = unstructured.find(object, paths.status, "int64")
  end
  if not why and type(paths.selector) == "string" then
    _, why = unstructured.find(object, paths.selector, "string")
  end
  return why
end


-- The Scale of `object`.
local function scale_of(res, object)
  local paths, meta = res.subresources.scale, object.metadata
  local replicas = at(object, paths.spec)
  return {
    kind = SCALE.kind, apiVersion = SCALE.api_version,
    metadata = {
      name = meta.name, namespace = meta.namespace, uid = meta.uid, resourceVersion = meta.resourceVersion,
      creationTimestamp = meta.creationTimestamp,
    },
    spec = { replicas = replicas ~= 0 and replicas or nil },
    status = { replicas = at(object, paths.status) or 0, selector = selector_of(object, paths.selector) },
  }
end


local function find(request)
  request.printed = request.res.builtin and PRINTED.builtin or PRINTED.custom
  local entry, failure = versioned_storage.find(request)
  if not entry then
    return nil, nil, failure
  end
  local object = store.object(request.res, entry)
  local why = not request.res.builtin and mistyped(request.res, object)
  if why then
    return nil, nil, status.unknown(why)
  end
  return entry, object
end


function M.get(request)
  local _, object, failure = find(request)
  if failure then
    return nil, failure
  end
  local path = request.res.subresources.scale.spec
  if at(object, path) == nil then
    return nil, status.internal(("the spec replicas field %s does not exist"):format(field.quote("." .. path)))
  end
  return 200, host.json.encode(scale_of(request.res, object))
end


-- The number that a Scale of a client asks for: one that names none asks for 0.
local function replicas_of(scale)
  return type(scale.spec) == "table" and scale.spec.replicas or 0
end


local function check(scale)
  local errors, replicas = {}, replicas_of(scale)
  if type(replicas) ~= "number" or replicas < 0 then
    errors[1] = field.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
  end
  if #errors > 0 then
    return status.invalid(SCALE.group, SCALE.kind, scale.metadata.name or "", errors)
  end
end


-- A custom object that has no replicas gets some, or its Scale is not changed.
local function is_empty(res, scale)
  if not res.builtin and replicas_of(scale) == NONE then
    local path = field.quote("." .. res.subresources.scale.spec)
    return status.bad_request(("the spec replicas field %s cannot be empty"):format(path))
  end
end


-- Of the built-in kinds a Scale may say which object it is about, by uid.
local function check_uid(res, old, scale)
  local uid = scale.metadata.uid
  if res.builtin and (uid or "") ~= "" and uid ~= old.metadata.uid then
    return status.conflict({ group = res.group, plural = res.plural .. "/scale" }, old.metadata.name,
      ("Precondition failed: UID in precondition: %s, UID in object meta: %s"):format(uid, old.metadata.uid))
  end
end


-- Plugins of admission see Scales, not the objects. @return table|nil failure
local function mutate(request, old, scale, settings)
  local res = request.res
  request.admission_view = { kind = SCALE, of = function(object)
    return object.kind == SCALE.kind and object or scale_of(res, object)
  end }
  return admission.mutating(request, "UPDATE", scale, old, settings)
end


-- Stores what a new Scale says of the object. `track(object)` notes who manages the object's fields.
local function store_scale(request, entry, old, scale, settings, track)
  local res = request.res
  local failure = write.settle_namespace(request, scale) or write.check_name(request, scale)
    or res.builtin and check(scale) or check_uid(res, old, scale) or is_empty(res, scale)
    or mutate(request, old, scale, settings)
  if failure then
    return nil, failure
  end
  local object = host.json.copy(old)
  put(object, res.subresources.scale.spec, replicas_of(scale))
  object.metadata.resourceVersion = scale.metadata.resourceVersion or old.metadata.resourceVersion
  track(object)
  local text
  text, failure = write.update(request, entry, old, object, settings)
  if not text then
    return nil, failure
  end
  return 200, host.json.encode(scale_of(res, host.json.decode(text)))
end


-- The same after an update or a patch, whose manager comes to own what it changed.
local function store_update(request, entry, old, scale, settings)
  return store_scale(request, entry, old, scale, settings, function(object)
    write.track(request, old, object, settings)
  end)
end


function M.update(request)
  local settings, failure = options.update(request)
  if not settings then
    return nil, failure
  end
  local scale
  scale, failure = body.object(request, settings, SCALE)
  if not scale then
    return nil, failure
  end
  local entry, old
  entry, old, failure = find(request)
  if failure then
    return nil, failure
  end
  return store_update(request, entry, old, scale, settings)
end


-- The Scale of an object, for patches.
local function live_scale(res, object)
  local scale = scale_of(res, object)
  if not res.builtin and at(object, res.subresources.scale.spec) == nil then
    scale.spec.replicas = NONE
  end
  return scale
end


-- Server-side apply: the owners of the object's replicas are those of its Scale.
local function apply_to(request, entry, old, settings)
  local res = request.res
  local scale, failure = apply.merged(request, live_scale(res, old), SCALE, settings, function(live, applied, how)
    return managers.apply_scale(old, live, applied, SCALE, res, how)
  end)
  if not scale then
    return nil, failure
  end
  return store_scale(request, entry, old, scale, settings, function(object)
    managers.keep_scale_owners(object, scale, res)
  end)
end


function M.patch(request)
  local kind, failure = change.kind(request)
  if not kind then
    return nil, failure
  end
  local settings
  settings, failure = options.patch(request, kind.name == "apply")
  if not settings then
    return nil, failure
  end
  local entry, old
  entry, old, failure = find(request)
  if failure then
    return nil, failure
  elseif kind.name == "apply" then
    return apply_to(request, entry, old, settings)
  end
  local scale
  scale, failure = change.apply(request, kind, live_scale(request.res, old), SCALE.schema, settings)
  failure = failure or change.prune_and_default(request, kind, SCALE, scale, settings)
  if failure then
    return nil, failure
  end
  return store_update(request, entry, old, scale, settings)
end


return M
