--- Kubernetes' library of regular expressions: find, findAll.
---
--- Rules: apiserver/pkg/cel/library/regex.go.
local frames = require "cluster.cel.frame"
local patterns = require "cluster.cel.patterns"
local values = require "cluster.cel.values"

local M = {}


-- Where the matches are, up to `count`; nil and a message when there is no answer.
local function places_of(text, pattern, count)
  local re, message = patterns.compile(pattern)
  if not re then
    return nil, "Illegal regex: " .. message
  end
  frames.look_at_clock()
  return re:find_all(text, count)
end


local function find(text, pattern)
  local places, message = places_of(text, pattern, 1)
  if not places then
    return nil, message
  end
  return places[1] and text:sub(places[1], places[2]) or ""
end


local function find_all(text, pattern, count)
  local places, message = places_of(text, pattern, count or -1)
  if not places then
    return nil, message
  end
  local found = {}
  for i = 1, #places, 2 do
    found[#found + 1] = text:sub(places[i], places[i + 1])
  end
  return values.list(found)
end


--- Adds them.
function M.add(functions)
  functions:add("find", "string_find_string", "string.(string) -> string", find)
  functions:add("findAll", "string_find_all_string", "string.(string) -> list(string)", find_all)
  functions:add("findAll", "string_find_all_string_int", "string.(string, int) -> list(string)", find_all)
end


return M
