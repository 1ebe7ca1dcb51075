--- Ranges of sizes and costs, { min, max }: what is known of a value before a run. They stop at what 64 bits hold.
---
--- Rules: cel-go checker/cost.go.
local M = {}

local MAX <const> = 2.0 ^ 64


local function bounded(number)
  return number < MAX and number + 0.0 or MAX
end


-- As a double: products of doubles do not wrap around.
local function ceil(number)
  return number < 2.0 ^ 53 and math.ceil(number) + 0.0 or number
end


--- @param min number
--- @param max number|nil the same as min when it is left out
function M.range(min, max)
  return { min = min + 0.0, max = (max or min) + 0.0 }
end


M.zero = M.range(0)
M.one = M.range(1)
M.unknown = M.range(0, MAX)
M.MAX = MAX


function M.add(a, b)
  return { min = bounded(a.min + b.min), max = bounded(a.max + b.max) }
end


function M.multiply(a, b)
  return { min = bounded(a.min * b.min), max = bounded(a.max * b.max) }
end


--- Multiplied by a number, rounded up.
function M.scale(a, factor)
  return { min = bounded(ceil(a.min * factor)), max = bounded(ceil(a.max * factor)) }
end


--- The range that has both.
function M.union(a, b)
  return { min = math.min(a.min, b.min), max = math.max(a.max, b.max) }
end


--- With integers, as far as they hold it.
function M.whole(a)
  local function integer(number)
    return number < 2.0 ^ 63 and math.tointeger(number) or math.maxinteger
  end
  return { min = integer(a.min), max = integer(a.max) }
end


return M
