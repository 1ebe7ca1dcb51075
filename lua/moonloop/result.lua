-- The results of a reconcile: makes those of ctx.invalid and ctx.terminal, and is the only place that reads the values
-- that a script returned.
local _, host = ...
local names = host.require "moonloop.names"
local time = host.require "moonloop.time"
local fields = host.require "moonloop.fields"
local conditions = host.require "moonloop.conditions"

local M = {}

local verdict = { __metatable = false }

-- The status that is written, with the conditions in it. `value` is a copy.
local function check_status(value)
  local status = value.status
  if status ~= nil and type(status) ~= "table" then
    return nil, "status: expected a table, got a " .. type(status)
  end
  if value.conditions == nil then
    return status
  end
  local list, problem = conditions.list(value.conditions)
  if problem or #list == 0 then
    return status, problem
  end
  status = status and host.copy(status) or {}
  if status.conditions ~= nil then
    return nil, "conditions and status.conditions: one of them, not both"
  end
  status.conditions = list
  return status
end


-- Returns the status that a script gave to ctx.invalid or ctx.terminal. Raises an error that blames their caller.
local function check_beside(call, beside)
  if beside == nil then
    return nil
  end
  local problem = type(beside) ~= "table" and "expected a table, got a " .. type(beside) or nil
  local copy = not problem and host.copy(beside)
  problem = problem or names.unknown(copy, fields.beside)
  local status
  if not problem then
    status, problem = check_status(copy)
  end
  if problem then
    error(("%s: %s"):format(call, problem), 3)
  end
  return status
end


--- The object asks for something impossible: its key waits for an edit.
---@param field string path of the field, "spec.schedule"
---@param why string
---@param beside? table { status =, conditions = }
function M.invalid(field, why, beside)
  local call = "ctx.invalid(field, why [, { status =, conditions = }])"
  if type(field) ~= "string" or type(why) ~= "string" then
    error(call .. ': expected two strings, as in ctx.invalid("spec.size", "too large")', 2)
  end
  local status = check_beside(call, beside)
  return setmetatable({ outcome = "invalid", field = field, message = why, status = status }, verdict)
end


--- The reconcile is not tried again before the object changes.
---@param why string
---@param beside? table { status =, conditions = }
function M.terminal(why, beside)
  local call = "ctx.terminal(why [, { status =, conditions = }])"
  if type(why) ~= "string" then
    error(call .. ": expected a string", 2)
  end
  return setmetatable({ outcome = "terminal", message = why, status = check_beside(call, beside) }, verdict)
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
  local status
  status, problem = check_status(value)
  if problem then
    return problem
  end
  if value.children ~= nil and type(value.children) ~= "table" then
    return "children: expected a list of objects, got a " .. type(value.children)
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
  return problem, status, after, at
end


-- Is the value unchanged since ctx.invalid or ctx.terminal made it?
local function is_verdict(value)
  return type(value.message) == "string" and (value.status == nil or type(value.status) == "table")
    and (value.outcome == "terminal" and value.field == nil
      or value.outcome == "invalid" and type(value.field) == "string")
end


--- Returns the arguments of ctx.invalid, if the value is its result; nil for any other value.
---@return string? field
---@return string? message
function M.invalid_of(value)
  if type(value) ~= "table" or not rawequal(host.getmetatable(value), verdict) then
    return nil
  end
  local read = host.copy(value)
  if read.outcome == "invalid" and is_verdict(read) then
    return read.field, read.message
  end
end


--- Reads the values that reconcile or finalize returned. Raises an error for any other value.
---@param where string "cnat.lua:27: reconcile": the function, and where it is defined
---@return string outcome "ok", "invalid" or "terminal"
---@return table? status
---@return number? requeue_after seconds
---@return number? requeue_at seconds since 1970
---@return string? field
---@return string? message
---@return table? children
function M.check(where, ...)
  local value, second = ...
  local function refuse(what)
    error(("%s returned %s"):format(where, what), 0)
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
    refuse(("a %s; expected nothing, { status =, conditions =, children =, requeue_after =, requeue_at = }, "
      .. "ctx.invalid(…) or ctx.terminal(…)"):format(type(value)))
  end
  local read = host.copy(value)
  if rawequal(host.getmetatable(value), verdict) then
    if not is_verdict(read) then
      refuse("a changed result of ctx.invalid or ctx.terminal")
    end
    return read.outcome, read.status, nil, nil, read.field, read.message
  end
  local problem, status, after, at = check_table(read)
  if problem then
    refuse("a table with a mistake: " .. problem)
  end
  return "ok", status, after, at, nil, nil, read.children
end


return M
