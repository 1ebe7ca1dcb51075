-- Checks the fields of a declaration that are about webhooks, for moonloop.controller: `default`, `validate`, `convert`
-- and `webhooks`.
local _, host = ...
local names = host.require "moonloop.names"
local fields = host.require "moonloop.fields"

local M = {}

local VERSIONS_MAX = 8
local SECONDS_MAX = 30 -- the API server's limit


local function a(value)
  return host.is_kind(value) and "the kind " .. tostring(value) or "a " .. type(value)
end


local function check_conversion(version, conversion)
  local field = "convert." .. version
  if type(conversion) ~= "table" or host.is_kind(conversion) then
    return ("%s: expected { to = function(object), from = function(object) }, got %s"):format(field, a(conversion))
  end
  local copy = host.copy(conversion)
  local problem = names.unknown(copy, fields.conversion)
  if problem then
    return field .. ": " .. problem
  end
  for _, direction in ipairs { "to", "from" } do
    if type(copy[direction]) ~= "function" then
      return ("%s.%s: expected function(object), got %s; both directions are needed, as the API server stores one "
        .. "version and clients ask for any"):format(field, direction, a(copy[direction]))
    end
  end
  return nil, { to = copy.to, from = copy.from }
end


-- { versions = the names, sorted, conversions = by name }
local function check_convert(convert, kind)
  if type(convert) ~= "table" or host.is_kind(convert) then
    return ("convert: expected { v1alpha1 = { to = function(object), from = function(object) } }, got %s"):format(
      a(convert))
  end
  local copy, checked, hub = host.copy(convert), { versions = {}, conversions = {} }, kind.apiVersion:match "[^/]+$"
  for version, conversion in pairs(copy) do
    if type(version) ~= "string" or #version > 63 or not version:match "^[a-z][a-z0-9]*$" then
      return ("convert: '%s' is no version of a kind, as in v1alpha1"):format(names.text(version))
    elseif version == hub then
      return ("convert.%s: this is the version that the script reconciles; declare the others"):format(version)
    end
    local problem, functions = check_conversion(version, conversion)
    if problem then
      return problem
    end
    checked.conversions[version] = functions
    table.insert(checked.versions, version)
  end
  if #checked.versions == 0 or #checked.versions > VERSIONS_MAX then
    return ("convert: expected 1 to %d versions, got %d"):format(VERSIONS_MAX, #checked.versions)
  end
  table.sort(checked.versions)
  return nil, checked
end


local function one_of(settings, field, ...)
  local value = settings[field]
  for _, known in ipairs { ... } do
    if value == nil or value == known then
      return nil
    end
  end
  return ('webhooks.%s: expected "%s", got %s'):format(field, table.concat({ ... }, '" or "'),
    type(value) == "string" and ("'%s'"):format(names.text(value)) or a(value))
end


local function check_selector(settings, field)
  local selector = settings[field]
  if selector == nil then
    return nil
  elseif type(selector) ~= "table" or host.is_kind(selector) then
    return ('webhooks.%s: expected a label selector, as in { matchLabels = { env = "prod" } }, got %s'):format(field,
      a(selector))
  end
  selector = host.copy(selector)
  local problem = names.unknown(selector, fields.selector)
  if problem then
    return ("webhooks.%s: %s"):format(field, problem)
  end
  settings[field] = selector
end


local function check_settings(settings)
  if type(settings) ~= "table" or host.is_kind(settings) then
    return ('webhooks: expected a table, as in { failure_policy = "Ignore" }, got %s'):format(a(settings))
  end
  settings = host.copy(settings)
  local unknown, seconds = names.unknown(settings, fields.webhooks), settings.timeout_seconds
  local problem = unknown and "webhooks: " .. unknown
    or one_of(settings, "failure_policy", "Fail", "Ignore")
    or one_of(settings, "match_policy", "Equivalent", "Exact")
    or check_selector(settings, "namespace_selector")
    or check_selector(settings, "object_selector")
  if not problem and seconds ~= nil and (math.type(seconds) ~= "integer" or seconds < 1 or seconds > SECONDS_MAX) then
    problem = ("webhooks.timeout_seconds: expected a whole number from 1 to %d"):format(SECONDS_MAX)
  end
  return problem, settings
end


--- Checks the webhooks of a declaration, a copy of its own.
---@param declaration table with `reconciles`, which has been checked
---@return string? problem
---@return table? checked { default =, validate =, versions =, conversions =, settings = }; nil: there are none
function M.check(declaration)
  local checked, problem, convert = { settings = {} }
  for _, field in ipairs { "default", "validate" } do
    local value = declaration[field]
    if value ~= nil and type(value) ~= "function" then
      return ("%s: expected %s, got %s"):format(field,
        field == "default" and "function(object)" or "function(new, old, ctx)", a(value))
    end
    checked[field] = value
  end
  if declaration.convert ~= nil then
    problem, convert = check_convert(declaration.convert, declaration.reconciles)
    if problem then
      return problem
    end
    checked.versions, checked.conversions = convert.versions, convert.conversions
  end
  if declaration.webhooks ~= nil then
    problem, checked.settings = check_settings(declaration.webhooks)
    if problem then
      return problem
    elseif not checked.default and not checked.validate then
      return "webhooks: says how default and validate are called; this controller has neither"
    end
  end
  local has_any = checked.default or checked.validate or checked.versions
  return nil, has_any and checked or nil
end


return M
