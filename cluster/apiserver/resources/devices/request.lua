--- Requests for devices: spec.devices of ResourceClaims and of their templates.
---
--- Rules: kubernetes/pkg/apis/resource/validation/validation.go (validateDeviceClaim),
--- pkg/apis/resource/v1/defaults.go, pkg/registry/resource/utils.go (AuthorizedForAdmin).
local check = require "cluster.apiserver.resources.check"
local common = require "cluster.apiserver.resources.devices.common"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local selector = require "cluster.apiserver.resources.devices.selector"
local storage = require "cluster.apiserver.resources.storage.common"

local M = {}

local REQUESTS_MAX, CONSTRAINTS_MAX, CONFIG_MAX, ALTERNATIVES_MAX = 32, 32, 32, 8
local PARAMETERS_MAX = 10 * 1024
local ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
local ONE_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
local NOT_A_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated "
  .. "by '/'"
local MODES = { "All", "ExactCount" }
local ADMIN_LABEL = "resource.kubernetes.io/admin-access"
local NONE = {}

--- Why a namespace may not have devices for administration.
M.NO_ADMIN = ("admin access to devices requires the `%s: true` label on the containing namespace"):format(ADMIN_LABEL)


local function default_count(wanted)
  wanted.allocationMode = wanted.allocationMode or "ExactCount"
  if wanted.allocationMode == "ExactCount" and not wanted.count then
    wanted.count = 1
  end
end


--- Fills in how many devices each request wants.
function M.defaults(devices)
  for _, request in ipairs(check.list(devices.requests)) do
    for _, wanted in ipairs(request.firstAvailable or { request.exactly }) do
      default_count(wanted)
    end
  end
end


--- The names of the requests, "a", and of their alternatives, "a/b", as a set.
function M.names_of(devices)
  local known = {}
  for _, request in ipairs(check.list(devices.requests)) do
    known[request.name] = true
    for _, alternative in ipairs(request.firstAvailable or NONE) do
      known[request.name .. "/" .. alternative.name] = true
    end
  end
  return known
end


local function name_of(request)
  return request.name
end


local function check_class(class, path, errors)
  if class == "" then
    errors[#errors + 1] = field.required(path, "")
  else
    common.name(class, names.subdomain, path, errors)
  end
end


local function check_count(wanted, path, errors)
  local mode, count = wanted.allocationMode, wanted.count or 0
  if mode == "All" then
    if count ~= 0 then
      errors[#errors + 1] = field.invalid(path .. ".count", count,
        "must not be specified when allocationMode is 'All'")
    end
  elseif mode == "ExactCount" then
    if count <= 0 then
      errors[#errors + 1] = field.invalid(path .. ".count", count, "must be greater than zero")
    end
  else
    errors[#errors + 1] = field.not_supported(path .. ".allocationMode", mode, MODES)
  end
end


local function check_toleration(toleration, path, errors)
  local operator, value = toleration.operator or "", toleration.value or ""
  if toleration.key then
    common.label_key(toleration.key, path .. ".key", errors)
  end
  if operator == "Exists" then
    if value ~= "" then
      errors[#errors + 1] = field.invalid(path .. ".value", value, "must be empty for operator `Exists`")
    end
  elseif operator == "Equal" then
    common.name(value, names.label_value, path .. ".value", errors)
  else
    check.choice(operator, { "Equal", "Exists" }, path .. ".operator", errors)
  end
  if toleration.effect then
    common.effect(toleration.effect, path .. ".effect", errors)
  end
end


-- Checks the devices that one alternative, or the only one, asks for.
local function check_wanted(wanted, path, errors)
  check_class(wanted.deviceClassName or "", path .. ".deviceClassName", errors)
  selector.check(wanted.selectors, path .. ".selectors", errors)
  check_count(wanted, path, errors)
  common.each(wanted.tolerations, nil, path .. ".tolerations", errors, function(toleration, at)
    check_toleration(toleration, at, errors)
  end)
end


local function check_alternative(wanted, path, errors)
  common.name(wanted.name, names.label, path .. ".name", errors)
  check_wanted(wanted, path, errors)
end


local function check_request(request, path, errors)
  common.name(request.name, names.label, path .. ".name", errors)
  if request.exactly and request.firstAvailable then
    errors[#errors + 1] = field.invalid(path, host.json.null, ONE_OF .. ", but multiple fields are set")
  elseif request.firstAvailable then
    common.each_once(request.firstAvailable, ALTERNATIVES_MAX, path .. ".firstAvailable", errors,
      function(wanted, at) check_alternative(wanted, at, errors) end, name_of)
  elseif request.exactly then
    check_wanted(request.exactly, path .. ".exactly", errors)
  else
    errors[#errors + 1] = field.required(path, ONE_OF)
  end
end


--- A name that has to be one of a request, or of an alternative. @param known table see names_of
function M.check_reference(name, known, path, errors)
  local _, slashes = name:gsub("/", "")
  if slashes > 1 then
    errors[#errors + 1] = field.invalid(path, name, NOT_A_REQUEST)
    return
  end
  for part in (name .. "/"):gmatch "(.-)/" do
    common.name(part, names.label, path, errors)
  end
  if not known[name] then
    errors[#errors + 1] = field.invalid(path, name, NOT_A_REQUEST)
  end
end


--- A list of such names.
function M.check_references(list, known, path, errors)
  common.each_once(list, REQUESTS_MAX, path, errors, function(name, at)
    M.check_reference(name, known, at, errors)
  end)
end


--- Checks the configuration that a driver gets: config.opaque.
function M.check_config(config, path, errors)
  local opaque = config.opaque
  path = path .. ".opaque"
  if not opaque then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  storage.check_driver(opaque.driver, path .. ".driver", errors)
  common.raw(opaque.parameters, PARAMETERS_MAX, path .. ".parameters", errors)
end


local function check_constraint(constraint, known, path, errors)
  M.check_references(constraint.requests, known, path .. ".requests", errors)
  if constraint.matchAttribute then
    common.fully_qualified(constraint.matchAttribute, path .. ".matchAttribute", errors)
  elseif constraint.distinctAttribute then
    common.fully_qualified(constraint.distinctAttribute, path .. ".distinctAttribute", errors)
  else
    errors[#errors + 1] = field.required(path, ONE_ATTRIBUTE)
  end
end


--- Checks the devices that a claim asks for.
function M.check(devices, path, errors)
  local known = M.names_of(devices)
  common.each_once(devices.requests, REQUESTS_MAX, path .. ".requests", errors, function(request, at)
    check_request(request, at, errors)
  end, name_of)
  common.each(devices.constraints, CONSTRAINTS_MAX, path .. ".constraints", errors, function(constraint, at)
    check_constraint(constraint, known, at, errors)
  end)
  common.each(devices.config, CONFIG_MAX, path .. ".config", errors, function(config, at)
    M.check_references(config.requests, known, at .. ".requests", errors)
    M.check_config(config, at, errors)
  end)
end


--- Returns true if the namespace of a write may have devices for administration.
function M.may_administer(request)
  local server = request.server
  local entry = server.store:get("namespaces", "", request.namespace)
  return entry ~= nil and entry.labels ~= nil and entry.labels[ADMIN_LABEL] == "true"
end


--- Devices for administration are for marked namespaces only. @param request table of the write
--- @return table errors
function M.check_admin(devices, request)
  for i, wanted in ipairs(check.list(devices.requests)) do
    if wanted.exactly and wanted.exactly.adminAccess then
      local path = ("spec.devices.requests[%d].adminAccess"):format(i - 1)
      return M.may_administer(request) and {} or { field.forbidden(path, M.NO_ADMIN) }
    end
  end
  return {}
end


return M
