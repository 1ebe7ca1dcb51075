-- Waiting, always for something: polls until it holds, with a deadline and a message that shows
-- what was there instead. Nothing in the specs sleeps to synchronise.
local socket = require "socket"

local M = {}

local INTERVAL = 0.02

-- A spec says how long a thing takes on a machine with nothing else to do, and more. A busy one gets so many times
-- that: what ends at a deadline has failed already, and how fast things are is for bench/.
local PATIENCE = 4

--- Seconds since 1970, with a fraction.
M.now = socket.gettime

--- Returns the seconds to allow a busy machine for something that takes so many seconds.
---@param seconds number
---@return number
function M.patient(seconds)
  return seconds * PATIENCE
end


local function shown(state)
  return state == nil and "nothing" or tostring(state)
end


--- Polls `predicate` until it returns something true, and returns that. Fails after `seconds`, times PATIENCE;
--- the predicate's second value says what was there instead.
---@param what string "the pod of at-1"
---@param seconds number
---@param predicate fun(): any, any
function M.till(what, seconds, predicate)
  local deadline = M.now() + M.patient(seconds)
  while true do
    local result, state = predicate()
    if result then
      return result
    end
    if M.now() > deadline then
      error(("waited %g s for %s; last seen: %s"):format(M.patient(seconds), what, shown(state)), 2)
    end
    socket.sleep(INTERVAL)
  end
end


--- Polls `predicate` for `seconds` and fails as soon as it does not hold: for what must not
--- happen.
---@param what string "one pod only"
function M.holds(what, seconds, predicate)
  local deadline = M.now() + seconds
  repeat
    local result, state = predicate()
    if not result then
      error(("%s did not hold for %g s; seen: %s"):format(what, seconds, shown(state)), 2)
    end
    socket.sleep(INTERVAL)
  until M.now() > deadline
end


--- Lets so many seconds pass: where that is what a spec is about, never to wait for something.
M.pass = socket.sleep


return M
