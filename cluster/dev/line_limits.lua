--- Bounds how many lines the terminal gets about one thing, and says how many it did not get.
local host = require "cluster.host"

local M = {}
M.__index = M

local PAUSE_MAX = 3600 -- seconds


function M.new()
  return setmetatable({ seconds = {}, firsts = {} }, M)
end


--- Counts a line about `name`. At most `most` of its lines are printed in a second.
--- @param say function(count) is told at the end of the second how many were left out, if any
--- @return boolean whether to print the line
function M:in_second(name, most, say)
  local second = self.seconds[name]
  if not second then
    second = { lines = 0 }
    self.seconds[name] = second
    host.after(1, function()
      self.seconds[name] = nil
      if second.lines > most then
        say(second.lines - most)
      end
    end)
  end
  second.lines = second.lines + 1
  return second.lines <= most
end


--- Counts a line about `name`, a part of `group`. Only its first lines are printed.
--- @param say function(count) is told how many were left out until then: after a second, and again after pauses that
---   double, as long as lines come
--- @return boolean whether to print the line
function M:at_first(group, name, most, say)
  local of_group = self.firsts[group] or {}
  local known = of_group[name] or { lines = 0, pause = 1, is_due = false }
  self.firsts[group], of_group[name] = of_group, known
  known.lines = known.lines + 1
  if known.lines > most and not known.is_due then
    known.is_due = true
    host.after(known.pause, function()
      known.is_due, known.pause = false, math.min(2 * known.pause, PAUSE_MAX)
      say(known.lines - most)
    end)
  end
  return known.lines <= most
end


--- The lines of a group are no longer counted.
function M:forget(group)
  self.firsts[group] = nil
end


return M
