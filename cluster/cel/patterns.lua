--- Regular expressions in the syntax of RE2, compiled once.
local regex = require "cluster.regex"

local M = {}

local KEPT_MAX = 1000 -- compiled patterns

local compiled, count = {}, 0


--- Compiles a pattern, or gives the one that was compiled before.
--- @return table|nil re
--- @return string? message Go's
function M.compile(pattern)
  local re = compiled[pattern]
  if re then
    return re
  end
  local message
  re, message = regex.compile(pattern)
  if not re then
    return nil, message
  elseif count >= KEPT_MAX then
    compiled, count = {}, 0
  end
  compiled[pattern], count = re, count + 1
  return re
end


--- Does the pattern match anywhere in the text?
--- @return boolean|nil
--- @return string? message
function M.match(pattern, text)
  local re, message = M.compile(pattern)
  if not re then
    return nil, message
  end
  local matches
  matches, message = re:match(text)
  if message then
    return nil, message
  end
  return matches
end


return M
