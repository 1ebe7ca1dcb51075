--- Constants that no function can read, and lists of elements of several types: found before a run.
---
--- Rules: cel-go cel/validator.go, ext/formatting.go (stringFormatValidator), as apiserver/pkg/cel/environment/base.go
--- chooses them.
local format = require "cluster.cel.format"
local patterns = require "cluster.cel.patterns"
local types = require "cluster.cel.types"

local M = {}


local function fails(name)
  return function(arg, overloads)
    for _, overload in ipairs(overloads) do
      if overload.name == name and overload.args[1].kind == arg.type.kind then
        return overload.run(arg.value) == nil
      end
    end
    return false
  end
end


-- name of a function → whether it cannot read a constant
local UNREADABLE = {
  duration = fails "duration",
  timestamp = fails "timestamp",
  matches = function(arg)
    return arg.type.kind == "string" and patterns.compile(arg.value) == nil
  end,
}


-- The pattern stands last: matches(text, pattern), text.matches(pattern).
local function check_constant(node, issues)
  local unreadable = UNREADABLE[node.name]
  local arg = unreadable and node.args[node.name == "matches" and not node.target and 2 or 1]
  if arg and arg.kind == "const" and unreadable(arg, node.overloads) then
    issues:add(arg.at, ("invalid %s argument"):format(node.name))
  end
end


-- The same type in all elements; dyn among others is none.
local function check_same(nodes, optional, issues)
  local first
  for i, node in ipairs(nodes) do
    local type = optional[i] and node.type.params[1] or node.type
    if first and not types.exact(first, type) then
      issues:add(node.at, ("expected type '%s' but found '%s'"):format(types.format(first), types.format(type)))
      return
    end
    first = first or type
  end
end


-- Clause of format → what its argument may be, and what is said of another.
local CLAUSES = {
  s = { "list map int uint double bool string timestamp bytes duration type null", "string" },
  d = { "int uint", "decimal" },
  f = { "double string", "fixed" },
  e = { "double string", "scientific" },
  b = { "int uint bool", "binary" },
  x = { "int uint string bytes", "hexadecimal" },
  X = { "int uint string bytes", "hexadecimal" },
  o = { "int uint", "octal" },
}


local function check_argument(letter, arg, issues)
  local kind = arg.type.kind
  local allowed, clause = CLAUSES[letter][1], CLAUSES[letter][2]
  if kind ~= "dyn" and not (" " .. allowed .. " "):find(" " .. kind .. " ", 1, true) then
    issues:add(arg.at, "error during formatting: " .. format.REFUSED[clause]:format(arg.type.name))
    return false
  end
  return true
end


-- "%d".format(["a"]): as many arguments as clauses, each of a type that its clause takes.
local function check_format(node, issues)
  local text, args, at, count = node.target.value, node.args[1].elements, 1, 0
  while true do
    local percent = text:find("%", at, true)
    if not percent then
      break
    elseif text:find("^%%", percent + 1) then
      at = percent + 2
    elseif percent == #text then
      return issues:add(node.at, "unexpected end of string")
    elseif count >= #args then
      return issues:add(node.at, ("index %d out of range"):format(count))
    else
      count = count + 1
      local ok, letter, _, stop = pcall(format.read_clause, text, percent + 1)
      if not ok then
        return issues:add(node.at, letter[1])
      elseif not check_argument(letter, args[count], issues) then
        return nil
      end
      at = stop
    end
  end
  if #args > count then
    issues:add(node.at, ("too many arguments supplied to string.format (expected %d, got %d)"):format(count, #args))
  end
end


local function is_constant_format(node)
  return node.name == "format" and node.target and node.target.kind == "const" and node.target.type.kind == "string"
    and #node.args == 1 and node.args[1].kind == "list"
end


local walk


local function walk_entries(node, issues, exempt)
  local keys, contents, optional = {}, {}, {}
  for i, entry in ipairs(node.entries) do
    keys[i], contents[i], optional[i] = entry.key, entry.value, entry.optional
    if entry.key then
      walk(entry.key, issues, exempt)
    end
    walk(entry.value, issues, exempt)
  end
  if node.kind == "map" and not exempt then
    check_same(keys, {}, issues)
    check_same(contents, optional, issues)
  end
end


local PARTS = { "operand", "target", "range", "filter", "init", "body" }


-- `exempt`: within the arguments of format, which may be of several types.
function walk(node, issues, exempt)
  if node.kind == "call" then
    check_constant(node, issues)
    if is_constant_format(node) then
      check_format(node, issues)
    end
    exempt = exempt or node.name == "format"
  elseif node.kind == "list" and not exempt then
    check_same(node.elements, node.optional, issues)
  end
  for _, part in ipairs(PARTS) do
    if node[part] then
      walk(node[part], issues, exempt)
    end
  end
  for _, arg in ipairs(node.args or node.elements or {}) do
    walk(arg, issues, exempt)
  end
  if node.entries then
    walk_entries(node, issues, exempt)
  end
end


--- @param node table checked
--- @param issues table where mistakes are added
function M.check(node, issues)
  walk(node, issues, false)
end


return M
