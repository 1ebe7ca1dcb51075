--- Shared by create, update, patch and apply: from the object of a request to the stored one. Updates continue in
--- replace.lua.
---
--- Rules: apiserver/pkg/registry/rest/{create,update}.go, apiserver/pkg/registry/generic/registry/store.go.
local admission = require "cluster.apiserver.admission"
local apply = require "cluster.apiserver.apply"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"
local replace = require "cluster.apiserver.verbs.replace"
local respond = require "cluster.apiserver.respond"
local status = require "cluster.apiserver.status"
local strategies = require "cluster.apiserver.verbs.strategies"
local versioned_storage = require "cluster.apiserver.versioned_storage"

local M = {}

local NO_STRATEGY = strategies.NONE

-- The characters of generated names: no vowels, no words.
local ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
local GENERATED_MAX = 63
local GENERATED_SUFFIX = 5
local GENERATE_TRIES = 8

local OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


--- The field manager of a write: as the client calls itself, or after its user agent.
function M.manager_of(request, options)
  if options.manager ~= "" then
    return options.manager
  end
  local agent = (request.headers["user-agent"] or ""):match("^[^/]*")
  return agent ~= "" and agent:sub(1, 128) or "unknown"
end


--- Makes the object's namespace that of the request. @return table|nil failure
function M.settle_namespace(request, object)
  local meta = object.metadata
  local wanted = request.res.namespaced and request.namespace or nil
  if meta.namespace == nil or wanted == nil then
    meta.namespace = wanted
  elseif meta.namespace ~= wanted then
    return status.bad_request(OTHER_NAMESPACE)
  end
end


--- The name in the object must be the one in the path. @return table|nil failure
function M.check_name(request, object)
  local name = object.metadata.name
  if not name then
    return status.bad_request(("the name of the object (%s based on URL) was undeterminable: name must be provided")
      :format(request.name))
  elseif name ~= request.name then
    return status.bad_request(("the name of the object (%s) does not match the name on the URL (%s)"):format(
      name, request.name))
  end
end


--- Takes out what stands twice in metadata.ownerReferences, with a warning.
function M.dedup_owners(request, object, after)
  local owners = object.metadata.ownerReferences
  if not owners or #owners < 2 then
    return
  end
  local unique_owners, twice, known = host.json.array {}, {}, {}
  for _, owner in ipairs(owners) do
    local text = host.json.encode(owner)
    if known[text] then
      twice[#twice + 1] = owner.uid
    else
      known[text] = true
      unique_owners[#unique_owners + 1] = owner
    end
  end
  if #twice > 0 then
    object.metadata.ownerReferences = unique_owners
    respond.warn(request, (".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references "
      .. "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
      .. "duplicate UID(s) observed: %s")
      :format(after and " after mutating admission happens" or "", table.concat(twice, ", ")))
  end
end


--- The other versions of the resource that a request is about, for field management.
--- @return table|nil descriptions, function convert(object, from, to), which raises a status when it cannot
function M.versions(request)
  local all = request.server.registry.versions[request.res.id] or {}
  return #all > 1 and all or nil, function(object, from, to)
    local converted, why = versioned_storage.convert(request, object, from, to)
    if not converted then
      error(status.unknown(why), 0)
    end
    return converted
  end
end


--- Notes in `object` who manages which of its fields. `old` is the object it follows, or nil.
function M.track(request, old, object, options)
  local versions, convert = M.versions(request)
  apply.update_managers(old, object, request.res, {
    manager = M.manager_of(request, options), subresource = request.subresource, time = host.timestamp(),
    versions = versions, convert = convert,
  })
end


local function random_suffix()
  local chars = {}
  for i = 1, GENERATED_SUFFIX do
    local at = host.random(#ALPHABET) + 1
    chars[i] = ALPHABET:sub(at, at)
  end
  return table.concat(chars)
end


-- A free name that starts with metadata.generateName, when no name was given.
local function generate_name(request, meta)
  if meta.name or not meta.generateName then
    return
  end
  local base = meta.generateName:sub(1, GENERATED_MAX - GENERATED_SUFFIX)
  for _ = 1, GENERATE_TRIES do
    meta.name = base .. random_suffix()
    if not request.server.store:get(request.res.id, meta.namespace or "", meta.name) then
      return
    end
  end
end


-- Sets what the server sets: uid, time, generation, name.
local function prepare_create(request, object)
  local meta, strategy = object.metadata, request.res.strategy or NO_STRATEGY
  meta.uid = host.uuid()
  meta.creationTimestamp = host.timestamp()
  generate_name(request, meta)
  if strategy.spec_changed ~= false then
    meta.generation = 1
  end
  if strategy.prepare_create then
    return strategy.prepare_create(object, strategies.context(request))
  end
end


-- @param prepared table|nil as stored.storable gave it
local function store_new(request, object, prepared)
  local meta, res = object.metadata, request.res
  local resource_version = meta.resourceVersion
  if resource_version and resource_version ~= "0" then
    return nil, status.unknown("resourceVersion should not be set on objects to be created")
  end
  if request.server.store:get(res.id, meta.namespace or "", meta.name) then
    return nil, status.already_exists(res, meta.name)
  end
  return request.server.store:create(res, object, prepared)
end


-- A client that creates with another verb needs the right to create too. It is checked when all else is right, as in
-- withAuthorization of apiserver/pkg/endpoints/handlers/update.go. @return table|nil failure
local function forbidden(request)
  if request.verb ~= "create" then
    return request.server.auth:refusal(request.user, setmetatable({ verb = "create" }, { __index = request }))
  end
end


--- Stores a new object. Its namespace is settled, its fields are managed.
--- @return string|nil text the object as JSON, as the request's version has it; nil and a status
function M.create(request, object, options)
  local res = request.res
  local strategy = res.strategy or NO_STRATEGY
  local failure = admission.mutating(request, "CREATE", object, nil, options) or M.settle_namespace(request, object)
  if failure then
    return nil, failure
  end
  local _
  _, failure = prepare_create(request, object)
  if failure then
    return nil, failure
  end
  local errors = metadata.validate(object.metadata, res, strategy.name or names.name_is_subdomain)
  strategies.append(errors, strategy.validate and strategy.validate(object, nil, request, errors))
  if #errors > 0 then
    return strategies.invalid(res, object, errors)
  end
  failure = forbidden(request)
  if failure then
    return nil, failure
  end
  if strategy.complete then
    strategy.complete(object)
  end
  strategies.warn(request, object, nil)
  failure = strategy.admit and strategy.admit(object, nil, strategies.context(request))
    or admission.validating(request, "CREATE", object, nil, options)
  if failure then
    return nil, failure
  end
  local prepared
  if not options.dry_run then
    prepared, failure = versioned_storage.storable(request, object)
  end
  failure = failure or request.has_waited and request.server.namespaces:check_create(request, object)
  if failure then
    return nil, failure
  end
  local charge
  charge, failure = request.server.quota.check(request, object, nil)
  if failure then
    return nil, failure
  elseif options.dry_run then
    return M.dry_create(request, object)
  end
  local entry
  entry, failure = store_new(request, object, prepared)
  if entry and charge then
    charge()
  end
  if not entry then
    return nil, failure
  end
  return versioned_storage.text(request, entry)
end


--- The answer of a create, without storing.
function M.dry_create(request, object)
  local meta = object.metadata
  if request.server.store:get(request.res.id, meta.namespace or "", meta.name) then
    return nil, status.already_exists(request.res, meta.name)
  end
  return host.json.encode(object)
end


--- Stores what follows an object; see replace.lua.
M.update = replace


return M
