--- CustomResourceDefinitions.
---
--- Rules: apiextensions-apiserver/pkg/registry/customresourcedefinition/{strategy,etcd}.go,
--- pkg/apis/apiextensions/v1/defaults.go. The effects of a write are in crd/init.lua, the checks in crd/validation.lua.
local canonical = require "cluster.apiserver.crd.canonical"
local conditions = require "cluster.apiserver.crd.conditions"
local host = require "cluster.host"
local validation = require "cluster.apiserver.crd.validation"
local webhook_client_config = require "cluster.apiserver.webhook_client_config"

local FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


local function storage_version(spec)
  for _, version in ipairs(spec.versions or {}) do
    if version.storage then
      return version.name
    end
  end
end


local function contains(list, wanted)
  for _, item in ipairs(list or {}) do
    if item == wanted then
      return true
    end
  end
  return false
end


local function note_storage_version(object)
  local name = storage_version(object.spec)
  local known = object.status.storedVersions or host.json.array {}
  if name and not contains(known, name) then
    known[#known + 1] = name
  end
  object.status.storedVersions = known[1] and known or host.json.null
end


local function defaults(object)
  local spec = object.spec
  local names = spec.names
  if (names.singular or "") == "" then
    names.singular = names.kind:lower()
  end
  if (names.listKind or "") == "" and names.kind ~= "" then
    names.listKind = names.kind .. "List"
  end
  if names.singular == "" then
    names.singular = nil
  end
  spec.conversion = spec.conversion or { strategy = "None" }
  webhook_client_config.defaults(spec.conversion.webhook and spec.conversion.webhook.clientConfig)
  for _, version in ipairs(type(spec.versions) == "table" and spec.versions or {}) do
    if version.schema and version.schema.openAPIV3Schema then
      canonical(version.schema.openAPIV3Schema)
    end
  end
end


local function prepare_create(object, ctx)
  object.status = { conditions = host.json.null, acceptedNames = { plural = "", kind = "" } }
  note_storage_version(object)
  validation.warn_of_formats(object, nil, ctx.request)
end


local function prepare_update(new, old, ctx)
  new.status = host.json.copy(old.status)
  note_storage_version(new)
  validation.warn_of_formats(new, old, ctx.request)
end


local function prepare_status(new, old)
  new.spec = old.spec
end


-- The first deletion: what the CRD defines is deleted before it goes.
local function mark_deleted(object)
  local finalizers = object.metadata.finalizers or host.json.array {}
  if not contains(finalizers, FINALIZER) then
    finalizers[#finalizers + 1] = FINALIZER
  end
  object.metadata.finalizers = finalizers
  conditions.set(object, "Terminating", "True", "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
end


return {
  name = validation.name,
  unconditional_update = false,
  defaults = defaults,
  prepare_create = prepare_create, prepare_update = prepare_update, prepare_status = prepare_status,
  validate = validation.create, validate_update = validation.update, validate_status = validation.status,
  mark_deleted = mark_deleted,
}
