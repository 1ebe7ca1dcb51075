--- The state of one run of a program: its variables, by number, and its cost so far.
---
--- The cost of a step is counted as cel-go counts it; a run that exceeds its limit ends. Some work takes more time than
--- it costs: comparing large objects, matching a pattern that was made to be slow. So a run also ends when it has used
--- a second of the processor, or compared two million values.
local M = {}

local SECONDS_MAX <const> = 1
local STEPS <const> = 64 -- between two looks at the clock
local VISITED_MAX <const> = 2000000

--- Raised when the limit is exceeded, and when a run takes too long.
M.EXCEEDED = {}
M.INTERRUPTED = {}

local visited = 0
local current -- the frame of the run


--- @param limit number
--- @return table frame { cost, limit, [n] = value, [-n] = why it has none, or a function that makes it }
function M.new(limit)
  visited = 0
  current = { cost = 0, limit = limit, steps = 0, deadline = nil }
  return current
end


local function check_time(frame)
  frame.steps = 0
  local now = os.clock()
  if not frame.deadline then
    frame.deadline = now + SECONDS_MAX
  elseif now > frame.deadline then
    error(M.INTERRUPTED, 0)
  end
end


--- Adds to the cost. Raises M.EXCEEDED or M.INTERRUPTED.
function M.spend(frame, cost)
  cost = frame.cost + cost
  frame.cost = cost
  if cost > frame.limit then
    error(M.EXCEEDED, 0)
  end
  local steps = frame.steps + 1
  frame.steps = steps
  if steps > STEPS then
    check_time(frame)
  end
end


--- Before what may take long, whatever it costs: the match of a pattern. Raises M.INTERRUPTED.
function M.look_at_clock()
  check_time(current)
end


--- Raises M.EXCEEDED when so much would be too much.
function M.afford(frame, cost)
  if frame.cost + cost > frame.limit then
    error(M.EXCEEDED, 0)
  end
end


--- So many values within others are looked at now: compared, counted, written. Raises M.INTERRUPTED when those of a run
--- are too many. A value that has the same one twice, and so on, is small in memory and large to look at.
function M.visit(count)
  visited = visited + count
  if visited > VISITED_MAX then
    error(M.INTERRUPTED, 0)
  end
end


--- The value of a variable that has none yet: it is made when it is first read.
--- @return any|nil value
--- @return string|nil message why there is none
function M.missing(frame, slot, name)
  local later = frame[-slot]
  if type(later) == "function" then
    local value, message = later()
    current = frame
    frame[slot], frame[-slot] = value, message
    return value, message
  end
  return nil, later or "no such attribute(s): " .. name
end


return M
