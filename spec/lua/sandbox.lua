--- Scripts in the real sandbox, for the specs of lua/moonloop/. Refusals of the sandbox are raised here.
local hostlua = require "hostlua"

local M = {}

local HEAD = 'local moonloop, time, result = require "moonloop", require "moonloop.time", require "moonloop.result" '
  .. 'local At, Pod = moonloop.kind("example.com/v1", "At"), moonloop.kind("v1", "Pod") '

-- Loads what `...` returned into the status of a reconcile: so a value leaves the sandbox.
local RETURNED = [[
  local function with_type(value)
    return { type = math.type(value) or type(value), value = value }
  end
  local status = { count = returned.n }
  for index = 1, returned.n do
    status["value" .. index] = with_type(returned[index])
  end
  return moonloop.controller { name = "at", reconciles = At, reconcile = function()
    return { status = status }
  end }
]]


local function must(value, message)
  if value == nil then
    error(message, 0)
  end
  return value
end


--- Returns the declaration of a script (hostlua.load), which has `moonloop`, `time` and `result`, the kinds At and Pod.
function M.load(script)
  return must(hostlua.load(HEAD .. script))
end


--- Runs a reconcile with these statements, and returns its outcome (hostlua.reconcile).
function M.reconcile(statements)
  return must(hostlua.reconcile(HEAD .. [[return moonloop.controller { name = "at", reconciles = At,
    reconcile = function(at, ctx) ]] .. statements .. " end }"))
end


--- Does a change from `old` to `new` count for what the script reconciles?
function M.counts(script, old, new)
  return must(hostlua.counts { script = HEAD .. script, old = old, new = new })
end


--- Runs statements while a script loads, and returns what they return: nil, booleans, numbers, strings, plain tables.
function M.run(statements)
  local came = must(hostlua.reconcile(HEAD .. "local returned = table.pack((function() " .. statements .. " end)()) "
    .. RETURNED))
  assert(came.outcome == "ok", came.message)
  local values = {}
  for index = 1, came.status.count do
    local returned = came.status["value" .. index]
    values[index] = returned.value
    assert((math.type(values[index]) or type(values[index])) == returned.type, "a value changed on its way")
  end
  return table.unpack(values, 1, came.status.count)
end


--- The message with which the sandbox refuses what one of the functions above is given. (luassert's error_matches takes
--- the place off a message.)
function M.refusal(call, ...)
  local ok, message = pcall(call, ...)
  assert(not ok, "it was not refused")
  return message
end


return M
