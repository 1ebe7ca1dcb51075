-- The conditions that a reconcile returns by their type, checked, as the list that status.conditions is. The host
-- merges that list into the object's (host/operator/status.c). Called by result.lua.
local _, host = ...
local names = host.require "moonloop.names"
local fields = host.require "moonloop.fields"

local M = {}

-- The rules of metav1.Condition (apimachinery, pkg/apis/meta/v1/types.go), which the CRDs of most operators repeat.
local TYPE_MAX, REASON_MAX, MESSAGE_MAX = 316, 1024, 32768
local EXAMPLE = 'as in { Ready = { status = true, reason = "AllRunning", message = "" } }'
local HOST_TYPE = "Reconciled" -- the host's own (host/operator/status.h)

local STATUS = { [true] = "True", [false] = "False", True = "True", False = "False", Unknown = "Unknown" }


local function a(value)
  return value == nil and "nothing" or "a " .. type(value)
end


-- ^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$
local function is_type(text)
  local prefix, name = text:match "^([^/]*)/(.*)$"
  name = name or text
  if #text > TYPE_MAX or not name:match "^%w[-%w_.]*$" or not name:match "%w$" then
    return false
  end
  if not prefix then
    return true
  end
  for label in (prefix .. "."):gmatch "([^.]*)%." do
    if not label:match "^[a-z0-9][-a-z0-9]*$" or label:match "-$" then
      return false
    end
  end
  return true
end


-- ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$
local function is_reason(text)
  return #text <= REASON_MAX and text:match "^%a[%w_,:]*$" ~= nil and text:match "[%w_]$" ~= nil
end


local function check_reason(type_name, reason)
  if reason == nil then
    return is_reason(type_name) and type_name, "needed, as the type is no reason"
  end
  if type(reason) ~= "string" then
    return nil, "expected a string, got " .. a(reason)
  end
  return is_reason(reason) and reason,
    ("'%s' is no reason: one word in CamelCase, of letters, digits, '_', ',' and ':', at most %d")
      :format(names.text(reason), REASON_MAX)
end


local function check_message(message)
  if message ~= nil and type(message) ~= "string" then
    return nil, "expected a string, got " .. a(message)
  end
  local length = message and (utf8.len(message) or #message) or 0
  return length <= MESSAGE_MAX and (message or ""), ("%d characters; at most %d"):format(length, MESSAGE_MAX)
end


local function check_status(status)
  local text = STATUS[status == nil and "" or status]
  local nearest = type(status) == "string" and names.nearest(status, "True False Unknown")
  return text, ("expected true, false or \"Unknown\", got %s%s"):format(
    type(status) == "string" and ("'%s'"):format(names.text(status)) or a(status),
    nearest and ("; did you mean '%s'?"):format(nearest) or "")
end


-- One condition. @return table|nil, string? problem
local function check_condition(type_name, condition)
  if rawequal(condition, host.null) then
    return { type = type_name, status = host.null }
  end
  if type(condition) ~= "table" then
    return nil, ("expected { status =, reason =, message = }, got %s"):format(a(condition))
  end
  condition = host.copy(condition)
  local problem = names.unknown(condition, fields.condition)
  if problem then
    return nil, problem
  end
  local status, status_problem = check_status(condition.status)
  local reason, reason_problem = check_reason(type_name, condition.reason)
  local message, message_problem = check_message(condition.message)
  if not status then
    return nil, "status: " .. status_problem
  elseif not reason then
    return nil, "reason: " .. reason_problem
  elseif not message then
    return nil, "message: " .. message_problem
  end
  return { type = type_name, status = status, reason = reason, message = message }
end


--- The list of these conditions, in the order of their types: new ones come onto the object in this order.
---@param conditions any as a script gave them; moonloop.null removes a condition
---@return table? list
---@return string? problem "conditions.Ready: status: expected true, false or …"
function M.list(conditions)
  if type(conditions) ~= "table" then
    return nil, ("conditions: expected a table of conditions by their type, %s; got %s"):format(EXAMPLE, a(conditions))
  end
  conditions = host.copy(conditions)
  local list = host.array()
  for type_name, given in pairs(conditions) do
    local condition, problem
    if type(type_name) ~= "string" or not is_type(type_name) then
      return nil, ("conditions: '%s' is no type of a condition, %s"):format(names.text(type_name), EXAMPLE)
    elseif type_name == HOST_TYPE then
      problem = "the host says this one, when a reconcile has failed; use another type"
    else
      condition, problem = check_condition(type_name, given)
    end
    if problem then
      return nil, ("conditions.%s: %s"):format(type_name, problem)
    end
    list[#list + 1] = condition
  end
  return list
end


return M
