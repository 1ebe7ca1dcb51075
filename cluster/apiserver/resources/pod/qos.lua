--- The QoS class of a pod: Guaranteed, Burstable or BestEffort.
---
--- Rules: kubernetes/pkg/apis/core/helper/qos/qos.go.
local quantity = require "cluster.quantity"

local M = {}

local COUNTED = { "cpu", "memory" }
local NONE = {}
local ZERO = quantity.of(0)


-- Adds what is above zero of cpu and memory to `sums`. @return boolean whether both were there
local function add(sums, amounts)
  local found = 0
  for _, name in ipairs(COUNTED) do
    local text = amounts and amounts[name]
    local amount = text and quantity.parse(text)
    if amount and quantity.compare(amount, ZERO) > 0 then
      found = found + 1
      sums[name] = sums[name] and quantity.add(amount, sums[name]) or amount
    end
  end
  return found == #COUNTED
end


local function same(requests, limits)
  for _, name in ipairs(COUNTED) do
    local request, limit = requests[name], limits[name]
    if (request == nil) ~= (limit == nil) or request and quantity.compare(request, limit) ~= 0 then
      return false
    end
  end
  return true
end


-- The objects that have requests and limits: the pod itself if it sets `resources`, else its containers.
local function holders(spec)
  if spec.resources then
    return { { resources = spec.resources } }
  end
  local list = {}
  for _, name in ipairs { "containers", "initContainers" } do
    for _, container in ipairs(spec[name] or NONE) do
      list[#list + 1] = container
    end
  end
  return list
end


--- The class of a pod with that spec.
function M.class(spec)
  local requests, limits, guaranteed = {}, {}, true
  for _, holder in ipairs(holders(spec)) do
    local resources = holder.resources or NONE
    add(requests, resources.requests)
    guaranteed = add(limits, resources.limits) and guaranteed
  end
  if not next(requests) and not next(limits) then
    return "BestEffort"
  end
  return guaranteed and same(requests, limits) and "Guaranteed" or "Burstable"
end


return M
