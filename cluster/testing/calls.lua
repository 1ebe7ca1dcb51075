--- The functions that a test calls: each checks its arguments by the table of the API (signatures.lua). A failure
--- has no place in front: observer.lua has busted report it at the line of the test that called.
local host = require "cluster.host"
local names = require "moonloop.names"
local signatures = require "cluster.testing.signatures"

local M = {}

local TEXT_MAX = 60 -- bytes of a wrong argument in a message

local WORDS = {
  string = "a string", number = "a number", integer = "an integer", boolean = "true or false", table = "a table",
  ["moonloop.Kind"] = 'a kind such as moonloop.kind("v1", "Pod")', ["moonloop.Manifest"] = "an object",
  ["moonloop.Manifest[]"] = "a list of objects", ["string[]"] = "a list of strings",
}


local function is_of(kind, value)
  local literal = kind:match '^"(.*)"$'
  if literal or kind == "false" then
    return value == (literal or false)
  elseif kind == "integer" then
    return math.type(value) == "integer"
  elseif kind == "moonloop.Kind" then
    return type(value) == "table" and type(value.apiVersion) == "string" and type(value.kind) == "string"
  elseif kind:find "^fun%(" then
    return type(value) == "function"
  end
  return type(value) == (WORDS[kind] and kind:match "^%l+$" or "table")
end


-- The kinds of "string|fun(x: table): string?". The one of a function is the last.
local function each_kind(union)
  local list = {}
  for kind in union:gsub("fun%(.*", "fun("):gmatch "[^|]+" do
    list[#list + 1] = kind
  end
  return list
end


local function in_words(union)
  local list = {}
  for i, kind in ipairs(each_kind(union)) do
    list[i] = WORDS[kind] or kind == "fun(" and "a function" or kind:find '^["f]' and kind or "a table"
  end
  local last = table.remove(list)
  return list[1] and ("%s or %s"):format(table.concat(list, ", "), last) or last
end


local function shown(value)
  local kind = type(value)
  if value == nil then
    return "nothing"
  elseif kind == "string" then
    return host.escape(('"%s"'):format(#value > TEXT_MAX and value:sub(1, TEXT_MAX) .. "…" or value))
  end
  return (kind == "number" or kind == "boolean") and tostring(value) or "a " .. kind
end


local check_options

-- The problem with the value of a parameter or field { "name?", "type" }; nil when there is none.
local function problem_of(param, value)
  local name, may_be_absent = param[1]:gsub("%?$", "")
  if value == nil and may_be_absent > 0 then
    return nil
  end
  for _, kind in ipairs(each_kind(param[2])) do
    if is_of(kind, value) then
      return signatures.options[kind] and check_options(signatures.options[kind], value)
    end
  end
  return ("%s: expected %s, got %s"):format(name, in_words(param[2]), shown(value))
end


function check_options(fields, options)
  local known = {}
  for i, field in ipairs(fields) do
    known[i] = field[1]:gsub("%?$", "")
    local problem = problem_of(field, options[known[i]])
    if problem then
      return problem
    end
  end
  local problem = names.unknown(options, table.concat(known, " "))
  return problem and host.escape(problem)
end


local function check_arguments(signature, face, given)
  if rawequal(given[1], face) then
    return ("%s: call it with a dot, not with a colon"):format(signature.call)
  end
  for i, param in ipairs(signature) do
    local problem = problem_of(param, given[i])
    if problem then
      return ("%s: %s"):format(signature.call, problem)
    end
  end
  if given.n > #signature then
    return ("%s: expected at most %d arguments, got %d"):format(signature.call, #signature, given.n)
  end
end


local function returned(ok, ...)
  if not ok then
    error(..., 0)
  end
  return ...
end


-- A function that a test calls, by the one that does the work.
local function public(name, fn, face)
  local signature = signatures.functions[name]
  return function(...)
    local problem = check_arguments(signature, face, table.pack(...))
    if problem then
      error(problem, 0)
    end
    return returned(pcall(fn, ...))
  end
end


--- How a message shows a function: "world.settle()".
function M.text_of(name)
  return signatures.functions[name].call
end


--- Has a table refuse names that it does not have. @param what string what a message calls it
function M.close(what, list)
  local known = {}
  for name in pairs(list) do
    known[#known + 1] = name
  end
  table.sort(known)
  return setmetatable(list, { __index = function(_, name)
    error(host.escape(names.missing(what, name, table.concat(known, " "))), 2)
  end })
end


--- The functions of a table as a test gets them: checked, under the same names. The functions raise without a place.
--- @param var string as the table of the API calls it: "world"
function M.public(var, functions)
  local face = {}
  for name, fn in pairs(functions) do
    face[name] = public(("%s.%s"):format(var, name), fn, face)
  end
  return M.close(var, face)
end


return M
