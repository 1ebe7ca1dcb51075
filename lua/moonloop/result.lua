-- The results of a reconcile: makes those of ctx.invalid and ctx.terminal, and is the one place that
-- interprets any other value.
local _, host = ...
local names = host.require "moonloop.names"
local time = host.require "moonloop.time"
local fields = host.require "moonloop.fields"

local M = {}

local verdict = { __metatable = false }

--- The object asks for something impossible: its key waits for an edit.
---@param field string path of the field, "spec.schedule"
---@param why string
function M.invalid(field, why)
  if type(field) ~= "string" or type(why) ~= "string" then
    error('ctx.invalid(field, why): expected two strings, as in ctx.invalid("spec.size", "too large")', 2)
  end
  return setmetatable({ outcome = "invalid", field = field, message = why }, verdict)
end


--- The reconcile is not tried again before the object changes.
---@param why string
function M.terminal(why)
  if type(why) ~= "string" then
    error("ctx.terminal(why): expected a string", 2)
  end
  return setmetatable({ outcome = "terminal", message = why }, verdict)
end


local function seconds(value, field)
  local number, why = value, nil
  if type(value) == "string" and field == "requeue_after" then
    number, why = time.duration(value)
  end
  if type(number) ~= "number" then
    return nil, ("%s: %s"):format(field, why or "expected a number of seconds, got a " .. type(value))
  end
  if number ~= number or number < 0 or number > 9e9 then
    return nil, ("%s: %s seconds is out of range"):format(field, tostring(number))
  end
  return number
end


local function check_table(value)
  local problem = names.unknown(value, fields.result)
  if problem then
    return problem
  end
  if value.status ~= nil and type(value.status) ~= "table" then
    return "status: expected a table, got a " .. type(value.status)
  end
  if value.requeue_after ~= nil and value.requeue_at ~= nil then
    return "requeue_after and requeue_at: one of them, not both"
  end
  local after, at
  if value.requeue_after ~= nil then
    after, problem = seconds(value.requeue_after, "requeue_after")
  elseif value.requeue_at ~= nil then
    at, problem = seconds(value.requeue_at, "requeue_at")
  end
  return problem, after, at
end


-- Is the value unchanged since ctx.invalid or ctx.terminal made it?
local function is_verdict(value)
  return type(value.message) == "string"
    and (value.outcome == "terminal" and value.field == nil
      or value.outcome == "invalid" and type(value.field) == "string")
end


--- Reads the values that reconcile returned. Raises an error for any other value.
---@param where string "cnat.lua:27", where reconcile is defined
---@return string outcome "ok", "invalid" or "terminal"
---@return table? status
---@return number? requeue_after seconds
---@return number? requeue_at seconds since 1970
---@return string? field
---@return string? message
function M.check(where, ...)
  local value, second = ...
  local function refuse(what)
    error(("%s: reconcile returned %s"):format(where, what), 0)
  end
  if value == nil and second ~= nil then
    refuse(("nil and '%s'; raise a failure (error, assert) or handle it"):format(tostring(second)))
  end
  if select("#", ...) > 1 and second ~= nil then
    refuse("more than one value")
  end
  if value == nil then
    return "ok"
  end
  if type(value) ~= "table" then
    refuse(("a %s; expected nothing, { status =, requeue_after =, requeue_at = }, "
      .. "ctx.invalid(…) or ctx.terminal(…)"):format(type(value)))
  end
  local read = host.copy(value)
  if rawequal(host.getmetatable(value), verdict) then
    if not is_verdict(read) then
      refuse("a changed result of ctx.invalid or ctx.terminal")
    end
    return read.outcome, nil, nil, nil, read.field, read.message
  end
  local problem, after, at = check_table(read)
  if problem then
    refuse("a table with a mistake: " .. problem)
  end
  return "ok", read.status, after, at
end


return M
