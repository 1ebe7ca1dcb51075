--- The requests and limits of containers.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (validateResourceRequirements).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local quantity = require "cluster.quantity"
local resource_names = require "cluster.apiserver.resources.resource_names"

local M = {}

local NONE = {}
local ZERO = quantity.of(0)


-- @return table|nil amount
local function check_amount(name, text, path, errors)
  resource_names.check_container(name, path, errors)
  local amount = quantity.parse(text)
  if not amount then
    return nil
  end
  if quantity.compare(amount, ZERO) < 0 then
    errors[#errors + 1] = field.invalid(path, text, "must be greater than or equal to 0")
  end
  if resource_names.is_extended(name) and not quantity.is_whole(amount) then
    errors[#errors + 1] = field.invalid(path, text, "must be an integer")
  end
  return amount
end


local function check_request(name, text, limits, path, errors)
  local amount = check_amount(name, text, path .. ".requests[" .. name .. "]", errors)
  local limit = limits[name] and quantity.parse(limits[name])
  if not limit then
    if not resource_names.may_overcommit(name) then
      errors[#errors + 1] = field.required(path .. ".limits", "Limit must be set for non overcommitable resources")
    end
    return
  end
  local difference = amount and quantity.compare(amount, limit) or 0
  local why
  if difference ~= 0 and not resource_names.may_overcommit(name) then
    why = "must be equal to %s limit of %s"
  elseif difference > 0 then
    why = "must be less than or equal to %s limit of %s"
  end
  if why then
    errors[#errors + 1] = field.invalid(path .. ".requests", text, why:format(name, limits[name]))
  end
end


--- resources of a container.
function M.validate(resources, path, errors)
  local limits, requests = resources.limits or NONE, resources.requests or NONE
  local huge, others = false, false
  for _, name in ipairs(check.sorted_keys(limits)) do
    check_amount(name, limits[name], path .. ".limits[" .. name .. "]", errors)
    huge, others = huge or resource_names.is_huge(name), others or name == "cpu" or name == "memory"
  end
  for _, name in ipairs(check.sorted_keys(requests)) do
    check_request(name, requests[name], limits, path, errors)
    huge, others = huge or resource_names.is_huge(name), others or name == "cpu" or name == "memory"
  end
  if huge and not others then
    errors[#errors + 1] = field.forbidden(path, "HugePages require cpu or memory")
  end
end


return M
