--- LimitRanges; limitranger.lua holds pods and claims to them.
---
--- Rules: kubernetes/pkg/apis/core/v1/defaults.go (SetDefaults_LimitRangeItem), pkg/apis/core/validation/validation.go
--- (ValidateLimitRange), pkg/registry/core/limitrange/strategy.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local lists = require "cluster.apiserver.resources.resource_lists"
local names = require "cluster.names"
local quantity = require "cluster.quantity"
local resource_names = require "cluster.apiserver.resources.resource_names"

local NONE = {}
local LISTS = { "max", "min", "default", "defaultRequest", "maxLimitRequestRatio" }
local TYPES = check.set { "Pod", "Container", "PersistentVolumeClaim" }


-- Puts into `list` what it lacks of `source`. @return table|nil list
local function fill(list, source)
  for name, text in pairs(source or NONE) do
    list = list or {}
    list[name] = list[name] or text
  end
  return list
end


local function default_item(item)
  for _, name in ipairs(LISTS) do
    for key, text in pairs(item[name] or NONE) do
      item[name][key] = quantity.milli(text)
    end
  end
  if item.type == "Container" then
    item.default = fill(item.default, item.max)
    item.defaultRequest = fill(fill(item.defaultRequest, item.default), item.min)
  end
end


local function defaults(object)
  for _, item in ipairs(check.list(object.spec.limits)) do
    default_item(item)
  end
end


-- An empty list is kept as none.
local function prepare(object)
  if #check.list(object.spec.limits) == 0 then
    object.spec.limits = host.json.null
  end
end


local function prepare_create(object)
  prepare(object)
  object.metadata.name = object.metadata.name or host.uuid()
end


local function check_type(kind, path, errors)
  local messages = names.qualified(kind)
  if messages then
    check.each(errors, path, kind, messages)
  elseif not kind:find("/", 1, true) and not TYPES[kind] then
    errors[#errors + 1] = field.invalid(path, kind, "must be a standard limit type or fully qualified")
  end
end


-- The names in the lists of an item, which goes to `used`.
local function check_names(item, list, used, path, errors)
  local of_containers = item.type == "Pod" or item.type == "Container"
  for _, name in ipairs(check.sorted_keys(item[list])) do
    local rule = of_containers and resource_names.check_container or resource_names.check
    rule(name, ("%s.%s[%s]"):format(path, list, name), errors)
    used[name] = true
  end
end


local function check_lists(item, path, errors)
  local used = {}
  check_names(item, "max", used, path, errors)
  check_names(item, "min", used, path, errors)
  for _, list in ipairs { "default", "defaultRequest" } do
    if item.type ~= "Pod" then
      check_names(item, list, used, path, errors)
    elseif item[list] then
      errors[#errors + 1] = field.forbidden(path .. "." .. list, "may not be specified when `type` is 'Pod'")
    end
  end
  if item.type == "PersistentVolumeClaim" and not (item.min or NONE).storage and not (item.max or NONE).storage then
    errors[#errors + 1] = field.required(path .. ".limits",
      "either minimum or maximum storage value is required, but neither was provided")
  end
  check_names(item, "maxLimitRequestRatio", used, path, errors)
  return used
end


-- Of two amounts that are both there the first may not be more: { first, second, whose path and value stand in the
-- error, its words }.
local PAIRS = {
  { "min", "max", "min", "min", "min value %s is greater than max value %s" },
  { "min", "defaultRequest", "defaultRequest", "defaultRequest",
    "min value %s is greater than default request value %s" },
  { "defaultRequest", "max", "defaultRequest", "defaultRequest",
    "default request value %s is greater than max value %s" },
  { "defaultRequest", "default", "defaultRequest", "defaultRequest",
    "default request value %s is greater than default limit value %s" },
  { "min", "default", "default", "min", "min value %s is greater than default value %s" },
  { "default", "max", "default", "max", "default value %s is greater than max value %s" },
}


local function float(text)
  local amount = quantity.parse(text)
  return amount and quantity.float(amount) or 0.0
end


local function check_ratio(name, item, path, errors)
  local ratio = (item.maxLimitRequestRatio or NONE)[name]
  if not ratio then
    return
  end
  path = ("%s.maxLimitRequestRatio[%s]"):format(path, name)
  if lists.compare(ratio, "1") < 0 then
    errors[#errors + 1] = field.invalid(path, ratio, ("ratio %s is less than 1"):format(ratio))
  end
  local min, max = (item.min or NONE)[name], (item.max or NONE)[name]
  local most = min and max and float(max) / float(min)
  if most and float(ratio) > most then
    errors[#errors + 1] = field.invalid(path, ratio,
      ("ratio %s is greater than max/min = %f"):format(ratio, most))
  end
end


local function check_amounts(name, item, path, errors)
  local function of(list)
    if item.type == "Pod" and list:find("^default") then
      return nil
    end
    return (item[list] or NONE)[name]
  end
  for _, pair in ipairs(PAIRS) do
    local first, second = of(pair[1]), of(pair[2])
    if first and second and lists.compare(first, second) > 0 then
      errors[#errors + 1] = field.invalid(("%s.%s[%s]"):format(path, pair[3], name), of(pair[4]),
        pair[5]:format(first, second))
    end
  end
  check_ratio(name, item, path, errors)
  local limit, request = of "default", of "defaultRequest"
  if limit and request and not resource_names.may_overcommit(name) and lists.compare(limit, request) ~= 0 then
    errors[#errors + 1] = field.invalid(("%s.defaultRequest[%s]"):format(path, name), request,
      ("default value %s must equal to defaultRequest value %s in %s"):format(limit, request, name))
  end
end


local function validate(object)
  local errors, seen = {}, {}
  for i, item in ipairs(check.list(object.spec.limits)) do
    local path = ("spec.limits[%d]"):format(i - 1)
    check_type(item.type, path .. ".type", errors)
    if seen[item.type] then
      errors[#errors + 1] = field.duplicate(path .. ".type", item.type)
    end
    seen[item.type] = true
    for _, name in ipairs(check.sorted_keys(check_lists(item, path, errors))) do
      check_amounts(name, item, path, errors)
    end
  end
  return errors
end


return {
  spec_changed = false,
  create_on_update = true,
  defaults = defaults,
  prepare_create = prepare_create, prepare_update = prepare,
  validate = validate, validate_update = validate,
}
