--- The label selectors of objects: { matchLabels =, matchExpressions = }.
---
--- Rules: apimachinery/pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector).
local M = {}


local function contains(values, value)
  for _, candidate in ipairs(values or {}) do
    if candidate == value then
      return true
    end
  end
  return false
end

-- A missing label is in no set.
local OPERATORS = {
  In = function(value, values) return value ~= nil and contains(values, value) end,
  NotIn = function(value, values) return value == nil or not contains(values, value) end,
  Exists = function(value) return value ~= nil end,
  DoesNotExist = function(value) return value == nil end,
}


--- Returns true if a selector matches everything, as {} does.
function M.is_empty(selector)
  return next(selector.matchLabels or {}) == nil and #(selector.matchExpressions or {}) == 0
end


--- Returns true if `labels` (name → value, or nil) meet the selector. An empty selector matches everything, and nil
--- matches nothing.
function M.match(selector, labels)
  if not selector then
    return false
  end
  labels = labels or {}
  for key, value in pairs(selector.matchLabels or {}) do
    if labels[key] ~= value then
      return false
    end
  end
  for _, expression in ipairs(selector.matchExpressions or {}) do
    if not OPERATORS[expression.operator](labels[expression.key], expression.values) then
      return false
    end
  end
  return true
end


return M
