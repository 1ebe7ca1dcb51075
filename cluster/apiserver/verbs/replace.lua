--- Replaces a stored object: from the object of the request to the stored one.
---
--- Rules: apiserver/pkg/registry/rest/update.go, apiserver/pkg/registry/generic/registry/store.go.
local admission = require "cluster.apiserver.admission"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"
local status = require "cluster.apiserver.status"
local strategies = require "cluster.apiserver.verbs.strategies"
local versioned_storage = require "cluster.apiserver.versioned_storage"

local NO_STRATEGY = strategies.NONE
local MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


-- Checks the resourceVersion that a client sends. @return table|nil failure
local function check_version(request, old, object)
  local res, meta = request.res, object.metadata
  local resource_version = meta.resourceVersion
  if resource_version and not resource_version:find("^%d+$") then
    return status.unknown(("strconv.ParseUint: parsing %s: invalid syntax"):format(field.quote(resource_version)))
  end
  if resource_version and resource_version:find("[^0]") then
    if resource_version ~= old.metadata.resourceVersion then
      return status.conflict(res, request.name, MODIFIED)
    end
    return nil
  end
  local strategy = res.strategy or NO_STRATEGY
  local unconditional = strategy.unconditional_update
  if unconditional == nil then
    unconditional = res.builtin
  end
  if not unconditional then
    return status.invalid(res.group, res.plural, request.name,
      { field.invalid("metadata.resourceVersion", 0, "must be specified for an update") })
  end
  meta.resourceVersion = old.metadata.resourceVersion
end


-- Everything but metadata and status.
local function spec_differs(new, old)
  for key, value in pairs(new) do
    if key ~= "metadata" and key ~= "status" and not host.json.equal(value, old[key]) then
      return true
    end
  end
  for key in pairs(old) do
    if new[key] == nil and key ~= "metadata" and key ~= "status" then
      return true
    end
  end
  return false
end


local function settle_generation(request, old, object)
  local strategy = request.res.strategy or NO_STRATEGY
  local changed = strategy.spec_changed
  if changed == false or request.subresource == "status" then
    return
  end
  if (changed or spec_differs)(object, old) then
    object.metadata.generation = (object.metadata.generation or 0) + 1
  end
end


-- Keeps fields that an update cannot change.
local function keep_system_fields(meta, old)
  meta.uid = meta.uid or old.uid
  meta.creationTimestamp = old.creationTimestamp
  if old.deletionTimestamp then
    meta.deletionTimestamp = old.deletionTimestamp
  end
  if meta.deletionGracePeriodSeconds == nil then
    meta.deletionGracePeriodSeconds = old.deletionGracePeriodSeconds
  end
end


local function prepare_update(request, old, object)
  local strategy, failure = request.res.strategy or NO_STRATEGY, nil
  object.metadata.generation = old.metadata.generation
  local prepare = request.prepare or request.subresource == "status" and strategy.prepare_status
    or strategy.prepare_update
  if prepare then
    local _
    _, failure = prepare(object, old, strategies.context(request))
  end
  if failure then
    return failure
  end
  settle_generation(request, old, object)
  keep_system_fields(object.metadata, old.metadata)
end


local function validate_update(request, old, object)
  local res = request.res
  local strategy = res.strategy or NO_STRATEGY
  local errors = metadata.validate(object.metadata, res, names.path_segment)
  local again = metadata.validate_update(object.metadata, old.metadata)
  strategies.append(errors, again)
  strategies.append(errors, again)
  local validate = request.validate or request.subresource == "status" and strategy.validate_status
    or strategy.validate_update
  strategies.append(errors, validate and validate(object, old, request, errors))
  return errors
end


-- Asks the kind, admission plugins and quota about a valid object. @return function|nil charge; nil and a Status to
-- refuse it
local function admit(request, old, object, options)
  local rule = (request.res.strategy or NO_STRATEGY).admit
  local failure = rule and rule(object, old, strategies.context(request))
    or admission.validating(request, "UPDATE", object, old, options)
  if failure then
    return nil, failure
  end
  return request.server.quota.check(request, object, old)
end


-- Keeps the times in managedFields if nothing else would change.
local function keep_manager_times(old, object)
  local new_fields, old_fields = object.metadata.managedFields, old.metadata.managedFields
  if not new_fields or not old_fields or #new_fields ~= #old_fields then
    return
  end
  for i, entry in ipairs(new_fields) do
    local other = old_fields[i]
    local time = entry.time
    entry.time = other.time
    local same = host.json.equal(entry, other)
    entry.time = time
    if not same then
      return
    end
  end
  object.metadata.managedFields = old_fields
  if not host.json.equal(object, old) then
    object.metadata.managedFields = new_fields
  end
end


local function emptied(old, object)
  local meta, before = object.metadata, old.metadata
  return before.deletionTimestamp ~= nil and (before.deletionGracePeriodSeconds or 0) == 0
    and (not meta.finalizers or #meta.finalizers == 0)
end


-- True unless the kind has something of its own to wait for before the object goes.
local function may_go(request, object)
  local may = (request.res.strategy or NO_STRATEGY).may_go
  return not may or may(object)
end


local function store_change(request, entry, old, object)
  local res, storage = request.res, request.server.store
  local goes, is_same = emptied(old, object) and may_go(request, object), host.json.equal(object, old)
  local prepared, failure
  if not goes and not is_same then
    prepared, failure = versioned_storage.storable(request, object)
  end
  if failure then
    return nil, failure
  elseif strategies.is_stale(request, entry) then
    return nil, status.conflict(res, request.name, MODIFIED)
  elseif goes then
    entry, failure = storage:delete(res, entry, host.json.copy(old))
    return entry and host.json.encode(object), failure
  elseif not is_same then
    entry, failure = storage:update(res, entry, object, prepared)
  end
  if not entry then
    return nil, failure
  end
  return versioned_storage.text(request, entry)
end


--- Stores what follows `old`, the object of `entry`. Its namespace is settled, its fields are managed.
--- @return string|nil text the object as JSON; nil and a status
return function(request, entry, old, object, options)
  local failure = not request.admission_view and admission.mutating(request, "UPDATE", object, old, options)
    or check_version(request, old, object) or prepare_update(request, old, object)
  if failure then
    return nil, failure
  end
  local errors = validate_update(request, old, object)
  if #errors > 0 then
    return strategies.invalid(request.res, object, errors)
  end
  strategies.warn(request, object, old)
  keep_manager_times(old, object)
  local charge
  charge, failure = admit(request, old, object, options)
  if failure then
    return nil, failure
  elseif options.dry_run then
    return host.json.encode(object)
  end
  local text
  text, failure = store_change(request, entry, old, object)
  if text and charge then
    charge()
  end
  return text, failure
end
