-- Label selectors for scripts: does a selector, as kubectl or a manifest has it, select an object with these labels?
local _, host = ...
local names = require "moonloop.names"

local M = {}

local CALL = "labels.match(selector, labels)"
local NEEDS_VALUES = { In = true, NotIn = true, Exists = false, DoesNotExist = false }
local REQUIREMENT = "key operator values"


-- "key=value" for each; nil and why.
local function add_labels(requirements, labels)
  if type(labels) ~= "table" then
    return "matchLabels: expected labels, got a " .. type(labels)
  end
  for key, value in pairs(host.copy(labels)) do
    if type(key) ~= "string" or type(value) ~= "string" or not host.is_label(key, value) then
      return ("matchLabels: no label has the name '%s' with such a value"):format(names.text(key))
    end
    requirements[#requirements + 1] = key .. "=" .. value
  end
end


-- A copy of a list; nil when it is none.
local function list_of(value)
  local list, count = type(value) == "table" and host.copy(value) or nil, 0
  for _ in pairs(list or {}) do
    count = count + 1
  end
  return list and count == #list and list or nil
end


local function join_values(values, key, at)
  local list = list_of(values)
  if not list or #list == 0 then
    return nil, at .. ".values: expected a list of one or more"
  end
  for _, value in ipairs(list) do
    if type(value) ~= "string" or not host.is_label(key, value) then
      return nil, ("%s.values: no label has the value '%s'"):format(at, names.text(value))
    end
  end
  return #list == 1 and list[1] == "" and "," or table.concat(list, ",")
end


-- "key in (a,b)" of one matchExpression; nil and why.
local function requirement_of(expression, at)
  if type(expression) ~= "table" then
    return nil, ("%s: expected { key =, operator =, values = }, got a %s"):format(at, type(expression))
  end
  expression = host.copy(expression)
  local key, operator = expression.key, expression.operator
  local why = names.unknown(expression, REQUIREMENT)
  if why then
    return nil, at .. ": " .. why
  elseif type(key) ~= "string" or not host.is_label(key, "") then
    return nil, ("%s.key: no label has the name '%s'"):format(at, names.text(key))
  elseif type(operator) ~= "string" or NEEDS_VALUES[operator] == nil then
    return nil, at .. ".operator: expected In, NotIn, Exists or DoesNotExist"
  elseif not NEEDS_VALUES[operator] then
    if expression.values ~= nil and (type(expression.values) ~= "table" or next(expression.values) ~= nil) then
      return nil, ("%s.values: %s has none"):format(at, operator)
    end
    return operator == "Exists" and key or "!" .. key
  end
  local values
  values, why = join_values(expression.values, key, at)
  return values and ("%s %s (%s)"):format(key, operator:lower(), values), why
end


-- A LabelSelector as kubectl writes one; nil and why.
local function text_of(selector)
  local requirements = {}
  selector = host.copy(selector)
  local why = names.unknown(selector, "matchLabels matchExpressions")
    or selector.matchLabels ~= nil and add_labels(requirements, selector.matchLabels)
  local expressions = selector.matchExpressions == nil and {} or list_of(selector.matchExpressions)
  if why or not expressions then
    return nil, why or "matchExpressions: expected a list"
  end
  for index, expression in ipairs(expressions) do
    local requirement
    requirement, why = requirement_of(expression, ("matchExpressions[%d]"):format(index))
    if not requirement then
      return nil, why
    end
    requirements[#requirements + 1] = requirement
  end
  return table.concat(requirements, ",")
end


local function check_labels(labels)
  if type(labels) ~= "table" then
    error(("%s: labels: expected those of an object, got a %s"):format(CALL, type(labels)), 3)
  end
  labels = host.copy(labels)
  for key, value in pairs(labels) do
    if type(key) ~= "string" or type(value) ~= "string" then
      error(("%s: labels: '%s' is no label; names and values are strings"):format(CALL, names.text(key)), 3)
    end
  end
  return labels
end


--- Does a selector select an object with these labels? One without requirements selects all, as in Kubernetes.
---@param selector string|table "app=web,tier in (a, b),!old" as for kubectl -l, or a LabelSelector of a manifest
---@param labels? table<string, string> none when left out
---@return boolean? selects
---@return string? why the selector is none
function M.match(selector, labels)
  if type(selector) ~= "string" and type(selector) ~= "table" then
    error(("%s: expected a selector, as in \"app=web\" or { matchLabels = { app = \"web\" } }, got %s"):format(CALL,
      selector == nil and "nil" or "a " .. type(selector)), 2)
  end
  labels = check_labels(labels == nil and {} or labels)
  local text, why = selector, nil
  if type(selector) == "table" then
    text, why = text_of(selector)
  end
  if text then
    local is_good, problem = host.selector_check(text)
    text, why = is_good and text, problem
  end
  if not text then
    return nil, why
  end
  return host.selector_matches(text, labels)
end


return M
