--- The status of ResourceClaims: the devices that somebody allocated, for whom, and what drivers say of them.
---
--- Rules: kubernetes/pkg/apis/resource/validation/validation.go (ValidateResourceClaimStatusUpdate),
--- pkg/registry/resource/resourceclaim/strategy.go, pkg/registry/resource/utils.go.
local check = require "cluster.apiserver.resources.check"
local common = require "cluster.apiserver.resources.devices.common"
local conditions = require "cluster.apiserver.resources.devices.conditions"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local ip = require "cluster.apiserver.resources.ip"
local names = require "cluster.names"
local request_rules = require "cluster.apiserver.resources.devices.request"
local scheduling = require "cluster.apiserver.resources.pod.scheduling"
local storage = require "cluster.apiserver.resources.storage.common"

local M = {}

local USERS_MAX, RESULTS_MAX, CONFIG_MAX, CONDITIONS_MAX, IPS_MAX = 256, 32, 64, 8, 16
local DATA_MAX, INTERFACE_MAX, HARDWARE_MAX = 10 * 1024, 256, 128
local SOURCES = { "FromClaim", "FromClass" }
local UUID = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-" .. ("%x"):rep(12) .. "$"
local NOT_NORMAL = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
  .. "hexadecimal characters"
local NO_MORE_USERS = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
local NONE = {}


-- The key that tells a device, or a share of one, from all others.
local function key_of(device)
  local key = table.concat({ device.driver, device.pool, device.device }, "/")
  return device.shareID and key .. "/" .. device.shareID or key
end


local function allocated(status)
  local set = {}
  for _, result in ipairs(status.allocation and status.allocation.devices.results or NONE) do
    set[key_of(result)] = true
  end
  return set
end


--- Drops the statuses that drivers gave for devices when these are released.
function M.drop_released(status, old)
  local now, before, still_allocated = allocated(status), allocated(old or NONE), host.json.array {}
  for _, device in ipairs(status.devices or NONE) do
    local key = key_of(device)
    if now[key] or not before[key] then
      still_allocated[#still_allocated + 1] = device
    end
  end
  status.devices = #still_allocated > 0 and still_allocated or nil
end


local function check_user(user, path, errors)
  for _, name in ipairs { "resource", "name", "uid" } do
    if user[name] == "" then
      errors[#errors + 1] = field.required(path .. "." .. name, "")
    end
  end
end


local function check_share(id, path, errors)
  if not id then
    return
  elseif #id ~= 36 then
    errors[#errors + 1] = field.invalid(path, id, "error validating uid: invalid UUID length: " .. #id)
  elseif not id:find(UUID) then
    errors[#errors + 1] = field.invalid(path, id, "error validating uid: invalid UUID format")
  elseif id ~= id:lower() then
    errors[#errors + 1] = field.invalid(path, id, NOT_NORMAL)
  end
end


-- Where a device is found.
local function check_place(device, path, errors)
  storage.check_driver(device.driver, path .. ".driver", errors)
  common.pool(device.pool, path .. ".pool", errors)
  common.name(device.device, names.label, path .. ".device", errors)
end


local function check_network(data, path, errors)
  for name, max in pairs { interfaceName = INTERFACE_MAX, hardwareAddress = HARDWARE_MAX } do
    if #(data[name] or "") > max then
      errors[#errors + 1] = field.too_long(path .. "." .. name, "", max)
    end
  end
  common.each_once(data.ips, IPS_MAX, path .. ".ips", errors, function(address, at)
    ip.check_interface(address, at, errors)
  end)
end


local function check_device(device, known, path, errors)
  check_place(device, path, errors)
  check_share(device.shareID, path .. ".shareID", errors)
  if not known[key_of(device)] then
    errors[#errors + 1] = field.invalid(path, key_of(device), "must be an allocated device in the claim")
  end
  local list = check.list(device.conditions)
  if #list > CONDITIONS_MAX then
    errors[#errors + 1] = field.too_many(path .. ".conditions", #list, CONDITIONS_MAX)
  end
  conditions.check(list, path .. ".conditions", errors)
  if device.data ~= nil and device.data ~= host.json.null then
    common.raw(device.data, DATA_MAX, path .. ".data", errors)
  end
  if device.networkData then
    check_network(device.networkData, path .. ".networkData", errors)
  end
end


local function check_result(result, known, path, errors)
  request_rules.check_reference(result.request, known, path .. ".request", errors)
  check_place(result, path, errors)
  common.binding_conditions(result, path, errors)
  check_share(result.shareID, path .. ".shareID", errors)
end


local function check_config(config, known, path, errors)
  if config.source == "" then
    errors[#errors + 1] = field.required(path .. ".source", "")
  else
    check.choice(config.source, SOURCES, path .. ".source", errors)
  end
  request_rules.check_references(config.requests, known, path .. ".requests", errors)
  request_rules.check_config(config, path, errors)
end


local function check_allocation(allocation, known, path, errors)
  local devices, at = allocation.devices, path .. ".devices"
  common.each(devices.results, RESULTS_MAX, at .. ".results", errors, function(result, place)
    check_result(result, known, place, errors)
  end)
  common.each(devices.config, CONFIG_MAX, at .. ".config", errors, function(config, place)
    check_config(config, known, place, errors)
  end)
  if allocation.nodeSelector then
    scheduling.node_selector(allocation.nodeSelector, path .. ".nodeSelector", errors)
  end
end


-- Checks the users of a claim: only an allocated claim has some, and one that is being deleted gets no new ones.
local function check_users(new, old, errors)
  local users, path = new.status.reservedFor or NONE, "status.reservedFor"
  if #users == 0 then
    return
  elseif not new.status.allocation then
    errors[#errors + 1] = field.forbidden(path, "may not be specified when `allocated` is not set")
  elseif new.metadata.deletionTimestamp then
    for _, user in ipairs(users) do
      local was_there = false
      for _, before in ipairs(old.status.reservedFor or NONE) do
        was_there = was_there or host.json.equal(user, before)
      end
      if not was_there then
        errors[#errors + 1] = field.forbidden(path, NO_MORE_USERS)
        return
      end
    end
  end
end


-- Devices for administration are for marked namespaces only.
local function check_admin(new, old, request, errors)
  local before = old.status.allocation and old.status.allocation.devices.results or NONE
  for i, result in ipairs(new.status.allocation and new.status.allocation.devices.results or NONE) do
    local had = before[i] and before[i].adminAccess
    if result.adminAccess and not had and not request_rules.may_administer(request) then
      errors[#errors + 1] = field.forbidden(("status.allocation.devices.results[%d].adminAccess"):format(i - 1),
        request_rules.NO_ADMIN)
      return
    end
  end
end


--- A strategy's validate_status.
function M.validate(new, old, request)
  local errors, status = {}, new.status
  check_admin(new, old, request, errors)
  common.each_once(status.reservedFor, USERS_MAX, "status.reservedFor", errors, function(user, at)
    check_user(user, at, errors)
  end, function(user) return user.uid end)
  local known = allocated(status)
  common.each_once(status.devices, nil, "status.devices", errors, function(device, at)
    check_device(device, known, at, errors)
  end, key_of)
  check_users(new, old, errors)
  if old.status.allocation and status.allocation then
    check.immutable_value(status.allocation, old.status.allocation, "status.allocation", errors)
  elseif status.allocation then
    check_allocation(status.allocation, request_rules.names_of(new.spec.devices), "status.allocation", errors)
  end
  return errors
end


return M
