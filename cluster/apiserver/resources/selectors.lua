--- Label selectors within objects.
---
--- Rules: apimachinery/pkg/apis/meta/v1/validation/validation.go, pkg/apis/meta/v1/helpers.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local label_selector = require "cluster.apiserver.selector.label_selector"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"

local M = {}

local NONE = {}
local OPERATORS = { In = true, NotIn = true, Exists = true, DoesNotExist = true }


local function check_requirement(requirement, path, errors)
  local operator, values = requirement.operator or "", check.list(requirement.values)
  if operator == "In" or operator == "NotIn" then
    if #values == 0 then
      errors[#errors + 1] = field.required(path .. ".values",
        "must be specified when `operator` is 'In' or 'NotIn'")
    end
  elseif OPERATORS[operator] then
    if #values > 0 then
      errors[#errors + 1] = field.forbidden(path .. ".values",
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    end
  else
    errors[#errors + 1] = field.invalid(path .. ".operator", operator, "not a valid selector operator")
  end
  check.each(errors, path .. ".key", requirement.key or "", names.qualified(requirement.key or ""))
  for i, value in ipairs(values) do
    check.each(errors, ("%s.values[%d]"):format(path, i - 1), value, names.label_value(value))
  end
end


--- A label selector; nil is fine.
function M.validate(selector, path, errors)
  if not selector then
    return
  end
  metadata.check_labels(selector.matchLabels, path .. ".matchLabels", errors)
  for i, requirement in ipairs(selector.matchExpressions or NONE) do
    check_requirement(requirement, ("%s.matchExpressions[%d]"):format(path, i - 1), errors)
  end
end


--- Returns true if a selector is valid, so that it can be matched.
function M.is_valid(selector)
  local errors = {}
  M.validate(selector, "", errors)
  return #errors == 0
end


--- As label_selector.lua has them.
M.is_empty, M.matches = label_selector.is_empty, label_selector.match


local function requirement_text(requirement)
  local operator, key = requirement.operator, requirement.key
  if operator == "Exists" then
    return key
  elseif operator == "DoesNotExist" then
    return "!" .. key
  end
  local values = table.move(requirement.values or NONE, 1, #(requirement.values or NONE), 1, {})
  table.sort(values)
  return ("%s %s (%s)"):format(key, operator == "In" and "in" or "notin", table.concat(values, ","))
end


--- A selector as the text that a query takes: "app=x,tier in (a,b)".
function M.text(selector)
  local parts = {}
  for key, value in pairs(selector.matchLabels or NONE) do
    parts[#parts + 1] = { key = key, text = key .. "=" .. value }
  end
  for _, requirement in ipairs(selector.matchExpressions or NONE) do
    parts[#parts + 1] = { key = requirement.key, text = requirement_text(requirement) }
  end
  table.sort(parts, function(a, b)
    return a.key < b.key or a.key == b.key and a.text < b.text
  end)
  for i, part in ipairs(parts) do
    parts[i] = part.text
  end
  return table.concat(parts, ",")
end


--- The selector of an object with spec.selector, in the form of a label selector; a ReplicationController has a plain
--- map of labels. nil: none.
function M.of(object)
  local selector = object.spec.selector
  if selector and object.kind == "ReplicationController" then
    return { matchLabels = selector }
  end
  return selector
end


--- The selector of a kind with spec.selector as text, for its scale.
function M.of_spec(object)
  local selector = M.of(object)
  return selector and M.text(selector) or nil
end


return M
