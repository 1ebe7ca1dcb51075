--- Capacities of devices that may be allocated in parts, and the amounts that a request may take of them.
---
--- Rules: kubernetes/pkg/apis/resource/validation/validation.go (validateRequestPolicy).
local common = require "cluster.apiserver.resources.devices.common"
local field = require "cluster.apiserver.field"
local lists = require "cluster.apiserver.resources.resource_lists"
local quantity = require "cluster.quantity"

local M = {}

local OPTIONS_MAX = 10
local BOTH = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
local compare = lists.compare


-- The amount as an integer, rounded up; the largest there is when it does not fit.
local function whole(text)
  return quantity.integer(quantity.whole(quantity.parse(text))) or math.maxinteger
end


local function check_values(policy, most, path, errors)
  local values, default, found = policy.validValues, policy.default, false
  for i = 2, #values do
    if compare(values[i - 1], values[i]) > 0 then
      errors[#errors + 1] = field.invalid(("%s[%d]"):format(path, i - 1), values[i],
        "values must be sorted in ascending order")
    end
  end
  common.each_once(values, OPTIONS_MAX, path, errors, function(value, at)
    if compare(value, most) > 0 then
      errors[#errors + 1] = field.invalid(at, value, "option is larger than capacity value: " .. most)
    end
    found = found or compare(value, default) == 0
  end, function(value) return tostring(whole(value)) end)
  if not found then
    errors[#errors + 1] = field.invalid(path, default, "default value is not valid according to the requestPolicy")
  end
end


local function check_step(range, default, most, path, errors)
  local step, least = range.step, range.min
  local sum = quantity.write(quantity.add(quantity.parse(least), quantity.parse(step)))
  if compare(sum, most) > 0 then
    errors[#errors + 1] = field.invalid(path, step, ("one step %s is larger than capacity value: %s"):format(sum, most))
  end
  for _, value in ipairs { default, range.max } do
    local size = whole(step)
    if size == 0 or (whole(value) - whole(least)) % size ~= 0 then
      errors[#errors + 1] = field.invalid(path, value,
        ("value is not a multiple of a given step (%s) from (%s)"):format(step, least))
    end
  end
end


local function check_range(policy, most, path, errors)
  local range, default = policy.validRange, policy.default
  local least = range.min
  local function bad(name, value, why)
    errors[#errors + 1] = field.invalid(path .. "." .. name, value, why)
  end
  if not least then
    errors[#errors + 1] = field.required(path .. ".min", "required when validRange is defined")
    return
  end
  if compare(least, most) > 0 then
    bad("min", least, "min is larger than capacity value: " .. most)
  end
  if compare(default, least) < 0 then
    bad("min", default, "default is less than min: " .. least)
  end
  if range.max then
    if compare(least, range.max) > 0 then
      bad("max", least, "min is larger than max: " .. range.max)
    end
    if compare(range.max, most) > 0 then
      bad("max", range.max, "max is larger than capacity value: " .. most)
    end
    if compare(default, range.max) > 0 then
      bad("max", default, "default is more than max: " .. range.max)
    end
  end
  if range.step then
    check_step(range, default, most, path .. ".step", errors)
  end
end


local function check_policy(policy, most, path, errors)
  local name = policy.validValues and "validValues" or policy.validRange and "validRange"
  if policy.validValues and policy.validRange then
    errors[#errors + 1] = field.forbidden(path, BOTH)
  elseif name and not policy.default then
    errors[#errors + 1] = field.required(path .. ".default", ("required when %s is defined"):format(name))
  elseif name == "validValues" then
    check_values(policy, most, path .. ".validValues", errors)
  elseif name then
    check_range(policy, most, path .. ".validRange", errors)
  end
end


--- One capacity. @param shared boolean|nil whether the device may be allocated several times
function M.check(capacity, shared, path, errors)
  local policy = capacity.requestPolicy
  path = path .. ".requestPolicy"
  if policy and shared then
    check_policy(policy, capacity.value, path, errors)
  elseif policy then
    errors[#errors + 1] = field.forbidden(path, "allowMultipleAllocations must be true")
  end
end


return M
