--- What Go's regexp says of a pattern that it cannot compile.
---
--- Rules and wordings: regexp/syntax. Only the mistakes that are common are told in Go's words.
local host = require "cluster.host"

local M = {}


local function quoted(text)
  return "`" .. text .. "`"
end


-- The place of a bracket that nothing closes, or nil.
local function open_bracket(text)
  local at = 1
  while at <= #text do
    local char = text:sub(at, at)
    if char == "\\" then
      at = at + 1
    elseif char == "[" then
      local from = at + (text:sub(at + 1, at + 1) == "^" and 3 or 2)
      local close = text:find("]", from, true)
      if not close then
        return at
      end
      at = close
    end
    at = at + 1
  end
end


-- How many parentheses are open at the end; below 0 as soon as one is closed too many.
local function balance(text)
  local open, class = 0, false
  for escape, char in text:gmatch "(\\?)(.)" do
    if escape == "" then
      class = char == "[" or class and char ~= "]"
      open = open + (class and 0 or char == "(" and 1 or char == ")" and -1 or 0)
      if open < 0 then
        return open
      end
    end
  end
  return open
end


--- What is wrong with a pattern, in Go's words; nil when nothing is.
function M.complaint(text)
  local compiled, why = host.regex.compile(text)
  if compiled then
    return nil
  end
  local words
  local bracket, open = open_bracket(text), balance(text)
  if bracket then
    words = "missing closing ]: " .. quoted(text:sub(bracket))
  elseif open ~= 0 then
    words = (open > 0 and "missing closing ): " or "unexpected ): ") .. quoted(text)
  elseif text:find "^[*+?]" then
    words = "missing argument to repetition operator: " .. quoted(text:match "^[*+?]+")
  elseif text:find "%(%?[=!<]" then
    words = "invalid or unsupported Perl syntax: " .. quoted(text:match "%(%?<?[=!]?")
  elseif text:find "\\$" then
    words = "trailing backslash at end of expression: ``"
  else
    words = why
  end
  return "error parsing regexp: " .. words
end


return M
