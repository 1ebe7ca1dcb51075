--- One device of a ResourceSlice.
---
--- Rules: kubernetes/pkg/apis/resource/validation/validation.go (validateDevice), pkg/apis/resource/v1/defaults.go.
local capacity = require "cluster.apiserver.resources.devices.capacity"
local check = require "cluster.apiserver.resources.check"
local common = require "cluster.apiserver.resources.devices.common"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local scheduling = require "cluster.apiserver.resources.pod.scheduling"

local M = {}

local ENTRIES_MAX, KEY_MAX, VALUE_MAX, COUNTERS_MAX = 32, 63 + 1 + 32, 64, 32
local TAINTS_MAX, CONSUMED_MAX = 16, 2
local KEY_SHOWN_MIN = 16
local ONE = "exactly one value must be specified"
local VERSION = "^%d+%.%d+%.%d+"
local NOT_VERSION = "must be a string compatible with semver.org spec 2.0.0"
local ONE_OF = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is "
  .. "set to true in the ResourceSlice spec"
local NOT_HERE = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to "
  .. "true in the ResourceSlice spec"
local VALUES = { "bool", "int", "string", "version" }
local NONE = {}


-- A long key is shown without its middle.
local function shown_key(key, max)
  max = math.max(max, KEY_SHOWN_MIN)
  if #key <= max then
    return key
  end
  local left = max - 3
  return key:sub(1, (left + 1) // 2) .. "..." .. key:sub(#key - left // 2 + 1)
end


-- A map whose keys and values have rules.
local function each_entry(map, max, path, errors, check_key, check_value)
  local keys = check.sorted_keys(map)
  if #keys > (max or math.huge) then
    errors[#errors + 1] = field.too_many(path, #keys, max)
    return
  end
  for _, key in ipairs(keys) do
    check_key(key, path, errors)
    check_value(map[key], ("%s[%s]"):format(path, shown_key(key, max and names.LABEL_MAX or KEY_MAX)))
  end
end


--- Counters by their names.
function M.check_counters(counters, path, errors)
  if next(counters or NONE) == nil then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  each_entry(counters, COUNTERS_MAX, path, errors, function(key, at)
    common.name(key, names.label, at, errors)
  end, function() end)
end


-- Numbers of a version have no leading zeros; what follows "-" and "+" are words with dots between.
local function is_version(text)
  local rest = text:match(VERSION .. "(.*)$")
  if not rest or text:match(VERSION):find "%f[%d]0%d" then
    return false
  end
  local release, build = rest:match "^(%-?[^+]*)(%+?.*)$"
  if release ~= "" then
    for word in (release:sub(2) .. "."):gmatch "(.-)%." do
      if not word:find "^[0-9A-Za-z-]+$" or word:find "^0%d+$" or release:byte() ~= 45 then
        return false
      end
    end
  end
  for word in (build == "" and "" or build:sub(2) .. "."):gmatch "(.-)%." do
    if not word:find "^[0-9A-Za-z-]+$" then
      return false
    end
  end
  return true
end


local function check_attribute(attribute, path, errors)
  local count, text, version = 0, attribute.string, attribute.version
  for _, name in ipairs(VALUES) do
    count = count + (attribute[name] ~= nil and 1 or 0)
  end
  if text and #text > VALUE_MAX then
    errors[#errors + 1] = field.too_long(path .. ".string", "", VALUE_MAX)
  end
  if version and not is_version(version) then
    errors[#errors + 1] = field.invalid(path .. ".version", version, NOT_VERSION)
  end
  if version and #version > VALUE_MAX then
    errors[#errors + 1] = field.too_long(path .. ".version", "", VALUE_MAX)
  end
  if count == 0 then
    errors[#errors + 1] = field.invalid(path, "", ONE)
  elseif count > 1 then
    errors[#errors + 1] = check.invalid_text(path, check.go_struct {
      { "IntValue", attribute.int }, { "BoolValue", attribute.bool }, { "StringValue", text },
      { "VersionValue", version }, { "IntValues" }, { "BoolValues" }, { "StringValues" }, { "VersionValues" },
    }, ONE)
  end
end


local function check_taint(taint, path, errors)
  common.label_key(taint.key, path .. ".key", errors)
  if taint.value then
    common.name(taint.value, names.label_value, path .. ".value", errors)
  end
  if taint.effect == "" then
    errors[#errors + 1] = field.required(path .. ".effect", "")
  else
    common.effect(taint.effect, path .. ".effect", errors)
  end
end


--- Says where devices are, in a slice or in one device of it. @param owner table  @param choices table names of fields
--- @param messages table { empty =, none =, many = } messages
function M.check_nodes(owner, choices, messages, path, errors)
  local set = {}
  for _, name in ipairs(choices) do
    local value, at = owner[name], path .. "." .. name
    if value == "" then
      errors[#errors + 1] = field.invalid(at, value, messages.empty)
    elseif value == false then
      errors[#errors + 1] = field.invalid(at, value, "must be either unset or set to true")
    elseif value ~= nil then
      set[#set + 1] = "`" .. name .. "`"
    end
    if name == "nodeName" and value and value ~= "" then
      common.name(value, names.subdomain, at, errors)
    elseif name == "nodeSelector" and value then
      scheduling.node_selector(value, at, errors)
      messages.selector(value, at, errors)
    end
  end
  if #set == 0 then
    errors[#errors + 1] = field.required(path, messages.none)
  elseif #set > 1 then
    errors[#errors + 1] = field.invalid(path, ("{%s}"):format(table.concat(set, ", ")), messages.many)
  end
end


local TOLD = { empty = "must not be empty", none = ONE_OF, many = ONE_OF, selector = function() end }

local function check_placing(device, of_devices, path, errors)
  if of_devices then
    M.check_nodes(device, { "nodeName", "nodeSelector", "allNodes" }, TOLD, path, errors)
  elseif device.nodeName or device.nodeSelector or device.allNodes ~= nil then
    errors[#errors + 1] = field.invalid(path, host.json.null, NOT_HERE)
  end
end


local function check_consumed(consumed, path, errors)
  if consumed.counterSet == "" then
    errors[#errors + 1] = field.required(path .. ".counterSet", "")
  else
    common.name(consumed.counterSet, names.label, path .. ".counterSet", errors)
  end
  M.check_counters(consumed.counters, path .. ".counters", errors)
end


local function check_entries(device, path, errors)
  local count = #check.sorted_keys(device.attributes) + #check.sorted_keys(device.capacity)
  if count > ENTRIES_MAX then
    errors[#errors + 1] = field.invalid(path, count,
      ("the total number of attributes and capacities must not exceed %d"):format(ENTRIES_MAX))
  end
  each_entry(device.attributes, nil, path .. ".attributes", errors, common.qualified, function(attribute, at)
    check_attribute(attribute, at, errors)
  end)
  each_entry(device.capacity, nil, path .. ".capacity", errors, common.qualified, function(one, at)
    capacity.check(one, device.allowMultipleAllocations, at, errors)
  end)
end


--- Fills in the time of taints.
function M.defaults(device)
  for _, taint in ipairs(device.taints or NONE) do
    taint.timeAdded = taint.timeAdded or host.timestamp()
  end
end


--- Leaves out what stands behind gates that are shut.
function M.drop(device)
  device.nodeAllocatableResourceMappings = nil
  for _, attribute in pairs(device.attributes or NONE) do
    attribute.bools, attribute.ints, attribute.strings, attribute.versions = nil, nil, nil, nil
  end
end


--- @param old table|nil the device of that name before an update
--- @param of_devices boolean|nil whether each device says on which nodes it is
function M.check(device, old, of_devices, path, errors)
  common.name(device.name, names.label, path .. ".name", errors)
  check_entries(device, path, errors)
  if not old or not host.json.equal(device.taints or NONE, old.taints or NONE) then
    common.each(device.taints, TAINTS_MAX, path .. ".taints", errors, function(taint, at)
      check_taint(taint, at, errors)
    end)
  end
  common.each_once(device.consumesCounters, CONSUMED_MAX, path .. ".consumesCounters", errors, function(consumed, at)
    check_consumed(consumed, at, errors)
  end, function(consumed) return consumed.counterSet end)
  check_placing(device, of_devices, path, errors)
  common.binding_conditions(device, path, errors)
end


return M
