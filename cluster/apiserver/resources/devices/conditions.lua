--- Conditions of the type that all APIs share.
---
--- Rules: apimachinery/pkg/apis/meta/v1/validation/validation.go (ValidateConditions).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"

local M = {}

local REASON_MAX, MESSAGE_MAX = 1024, 32768
local STATUSES = { "False", "True", "Unknown" }
local NOT_A_REASON = "a condition reason must start with alphabetic character, optionally followed by a string of "
  .. "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or "
  .. "'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
  .. "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"


local function check_reason(reason, path, errors)
  if reason == "" then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  if not (reason:find "^[A-Za-z][A-Za-z0-9_,:]*$" and reason:find "[A-Za-z0-9_]$") then
    errors[#errors + 1] = field.invalid(path, reason, NOT_A_REASON)
  end
  if #reason > REASON_MAX then
    errors[#errors + 1] = field.too_long(path, "", REASON_MAX)
  end
end


local function check_one(condition, path, errors)
  check.each(errors, path .. ".type", condition.type, names.qualified(condition.type))
  check.choice(condition.status, STATUSES, path .. ".status", errors)
  if (condition.observedGeneration or 0) < 0 then
    errors[#errors + 1] = field.invalid(path .. ".observedGeneration", condition.observedGeneration,
      "must be greater than or equal to zero")
  end
  if condition.lastTransitionTime == nil or condition.lastTransitionTime == host.json.null then
    errors[#errors + 1] = field.required(path .. ".lastTransitionTime", "")
  end
  check_reason(condition.reason, path .. ".reason", errors)
  if #condition.message > MESSAGE_MAX then
    errors[#errors + 1] = field.too_long(path .. ".message", "", MESSAGE_MAX)
  end
end


--- A list of conditions.
function M.check(list, path, errors)
  local seen = {}
  for i, condition in ipairs(list) do
    local at = ("%s[%d]"):format(path, i - 1)
    if seen[condition.type] then
      errors[#errors + 1] = field.duplicate(at .. ".type", condition.type)
    end
    seen[condition.type] = true
    check_one(condition, at, errors)
  end
end


return M
