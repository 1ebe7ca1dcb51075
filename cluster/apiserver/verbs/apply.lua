--- Server-side apply: a PATCH with the fields that its manager wants the object to have.
---
--- Rules: apiserver/pkg/endpoints/handlers/patch.go (applyPatcher).
local host = require "cluster.host"
local managers = require "cluster.apiserver.apply"
local prune_and_default = require "cluster.apiserver.prune_and_default"
local respond = require "cluster.apiserver.respond"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local versioned_storage = require "cluster.apiserver.versioned_storage"
local write = require "cluster.apiserver.verbs.write"
local yaml = require "cluster.apiserver.verbs.yaml"


-- @return table|nil object, or nil and a status  @return string|nil complaint about keys that come twice
local function read(request, settings)
  local applied, why, complaint = yaml.decode(request.body, settings.validation ~= "Ignore")
  if applied == nil then
    return nil, status.bad_request("error decoding YAML: error converting YAML to JSON: " .. why)
  elseif applied == host.json.null then
    return {}
  elseif type(applied) ~= "table" or host.json.is_array(applied) then
    local kind = type(applied) == "table" and "array" or type(applied) == "boolean" and "bool" or type(applied)
    return nil, status.bad_request("error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
      .. "unmarshal " .. kind .. " into Go value of type map[string]interface {}")
  elseif applied.metadata == host.json.null then
    applied.metadata = nil
  end
  return applied, complaint and "error converting YAML to JSON: " .. complaint
end


-- Keys that come twice are looked at after all else. @return table|nil a status
local function judge(request, settings)
  local complaint = settings.complaint
  if complaint and settings.validation == "Strict" then
    return status.bad_request("error strict decoding YAML: " .. complaint)
  end
  for _, warning in ipairs(complaint and yaml.warnings(complaint) or {}) do
    respond.warn(request, warning)
  end
end


local function merged(request, live, applied, settings)
  local versions, convert = write.versions(request)
  local object, failure = managers.apply(live, applied, request.res, {
    manager = settings.manager, force = settings.force, subresource = request.subresource, time = host.timestamp(),
    versions = versions, convert = convert,
  })
  failure = failure or judge(request, settings)
  if failure then
    return nil, failure
  end
  local unknown, why = prune_and_default(request.res, object)
  if not unknown then
    return nil, status.bad_request(why)
  end
  object.apiVersion, object.kind = request.res.api_version, request.res.kind
  failure = write.settle_namespace(request, object) or write.check_name(request, object)
  return not failure and object or nil, failure
end


local function create(request, applied, settings)
  if request.subresource then
    return nil, status.not_found(request.res, request.name)
  end
  local object, failure = merged(request, nil, applied, settings)
  if not object then
    return nil, failure
  end
  object.metadata.resourceVersion = nil
  local uid = object.metadata.uid
  if uid then
    return nil, status.conflict(request.res, request.name,
      ("uid mismatch: the provided object specified uid %s, and no existing object was found"):format(uid))
  end
  failure = request.server.namespaces:check_create(request, object)
  if failure then
    return nil, failure
  end
  local text
  text, failure = write.create(request, object, settings)
  return text and 201, text or failure
end


--- @param settings table of options.patch
--- @return integer|nil code, string text; or nil and a status
return function(request, settings)
  local applied, rest = read(request, settings)
  if not applied then
    return nil, rest
  end
  settings.complaint = rest
  local res = request.res
  local entry = request.server.store:get(res.id, request.space, request.name)
  if not entry then
    return create(request, applied, settings)
  end
  local object
  local failure = versioned_storage.make_ready(request, { entry })
  if failure then
    return nil, failure
  end
  local old = store.object(res, entry)
  object, failure = merged(request, old, applied, settings)
  if not object then
    return nil, failure
  end
  write.dedup_owners(request, object, true)
  local text
  text, failure = write.update(request, entry, old, object, settings)
  return text and 200, text or failure
end
