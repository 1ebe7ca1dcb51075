--- Methods of texts that the language itself has: contains, startsWith, endsWith, matches.
---
--- Rules: cel-go common/stdlib/standard.go, common/types/string.go.
local frames = require "cluster.cel.frame"
local patterns = require "cluster.cel.patterns"

local M = {}


local function ends_with(text, suffix)
  return suffix == "" or text:sub(-#suffix) == suffix
end


local function matches(text, pattern)
  frames.look_at_clock()
  return patterns.match(pattern, text)
end


--- Adds them.
function M.add(functions)
  functions:add("contains", "contains_string", "string.(string) -> bool", function(text, part)
    return text:find(part, 1, true) ~= nil
  end)
  functions:add("endsWith", "ends_with_string", "string.(string) -> bool", ends_with)
  functions:add("startsWith", "starts_with_string", "string.(string) -> bool", function(text, prefix)
    return text:sub(1, #prefix) == prefix
  end)
  functions:add("matches", "matches", "(string, string) -> bool", matches)
  functions:add("matches", "matches_string", "string.(string) -> bool", matches)
end


return M
