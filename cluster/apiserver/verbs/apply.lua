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

local M = {}


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
local function judge(request, settings, complaint)
  if complaint and settings.validation == "Strict" then
    return status.bad_request("error strict decoding YAML: " .. complaint)
  end
  for _, warning in ipairs(complaint and yaml.warnings(complaint) or {}) do
    respond.warn(request, warning)
  end
end


--- Merges the body of a request into an object, sets its defaults, and checks that it is named as the request says.
--- @param live table|nil the object, or nil where there is none yet  @param res table description of its kind
--- @param settings table of options.patch
--- @param merge function(live, applied, options) as apply.apply of field management, without the description
--- @return table|nil object, or nil and a status
function M.merged(request, live, res, settings, merge)
  local applied, rest = read(request, settings)
  if not applied then
    return nil, rest
  end
  local object, failure = merge(live, applied, {
    manager = settings.manager, force = settings.force, subresource = request.subresource, time = host.timestamp(),
  })
  failure = failure or judge(request, settings, rest)
  if failure then
    return nil, failure
  end
  local unknown, why = prune_and_default(res, object)
  if not unknown then
    return nil, status.bad_request(why)
  end
  object.apiVersion, object.kind = res.api_version, res.kind
  failure = write.settle_namespace(request, object) or write.check_name(request, object)
  return not failure and object or nil, failure
end


local function merged(request, live, settings)
  return M.merged(request, live, request.res, settings, function(_, applied, options)
    options.versions, options.convert = write.versions(request)
    return managers.apply(live, applied, request.res, options)
  end)
end


local function create(request, settings)
  if request.subresource then
    return nil, status.not_found(request.res, request.name)
  end
  local object, failure = merged(request, nil, settings)
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


--- Applies to the object of a request, or to its status.
--- @param settings table of options.patch
--- @return integer|nil code, string text; or nil and a status
function M.run(request, settings)
  local res = request.res
  local entry = request.server.store:get(res.id, request.space, request.name)
  if not entry then
    return create(request, settings)
  end
  local object
  local failure = versioned_storage.make_ready(request, { entry })
  if failure then
    return nil, failure
  end
  local old = store.object(res, entry)
  object, failure = merged(request, old, settings)
  if not object then
    return nil, failure
  end
  write.dedup_owners(request, object, true)
  local text
  text, failure = write.update(request, entry, old, object, settings)
  return text and 200, text or failure
end


return M
