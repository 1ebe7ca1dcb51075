--- Regular expressions in the syntax of Go's regexp. RE2 matches them (docs/decisions/0032-re2.md); this file has what
--- RE2 and Go read in another way, and Go's messages.
---
--- Rules: regexp/syntax/parse.go.
local host = require "cluster.host"

local M = {}

local DEPTH_MAX = 1000 -- of groups


local function refusal(reason, part)
  return ("error parsing regexp: %s: `%s`"):format(reason, part)
end


-- The place behind the class that begins at `at`, or behind the pattern when the class does not end.
local function skip_class(pattern, at)
  at = pattern:match("^%[%^?%]?()", at)
  while at <= #pattern do
    local next = pattern:match("^\\.()", at) or pattern:match("^%[:[^%]]*:%]()", at)
    if not next and pattern:sub(at, at) == "]" then
      return at + 1
    end
    at = next or at + 1
  end
  return at
end


-- The place behind what begins at `at` with a backslash; nil for \C, a byte of any value, which Go does not have.
local function skip_escape(pattern, at)
  local letter = pattern:sub(at + 1, at + 1)
  if letter == "Q" then
    local _, stop = pattern:find("\\E", at + 2, true)
    return (stop or #pattern) + 1
  end
  return letter ~= "C" and at + 2 or nil
end


-- Takes the names off the groups: the RE2 of Debian 12 does not know "(?<name>", and none takes a name twice. Returns
-- nil and Go's message for what only Go refuses.
local function without_names(pattern)
  local parts, copied, at, depth = {}, 1, 1, 0
  while true do
    at = pattern:find("[\\%[()]", at)
    if not at then
      return table.concat(parts) .. pattern:sub(copied)
    end
    local char, from = pattern:sub(at, at), at
    if char == "\\" then
      at = skip_escape(pattern, from)
      if not at then
        return nil, refusal("invalid escape sequence", "\\C")
      end
    elseif char == "[" then
      at = skip_class(pattern, from)
    else
      at = from + 1
      depth = depth + (char == "(" and 1 or -1)
      if depth > DEPTH_MAX then
        return nil, refusal("expression nests too deeply", pattern)
      end
      local name, stop = pattern:match("^%(%?P?<([^>]*)>?()", from)
      if name and not pattern:sub(from, stop - 1):find "^%(%?P?<[%w_]+>$" then
        return nil, refusal("invalid named capture", pattern:sub(from, stop - 1))
      elseif name then
        parts[#parts + 1] = pattern:sub(copied, from - 1) .. "(?:"
        copied, at = stop, stop
      end
    end
  end
end


local function compile(pattern)
  if not utf8.len(pattern) then
    return nil, refusal("invalid UTF-8", pattern)
  end
  local plain = pattern
  if #pattern > DEPTH_MAX or pattern:find "%(%?P?<" or pattern:find("\\C", 1, true) then
    local rewritten, why = without_names(pattern)
    if not rewritten then
      return nil, why
    end
    plain = rewritten
  end
  local compiled, reason, part = host.regex.compile(plain)
  if compiled then
    return compiled
  end
  return nil, refusal(reason, part == plain and pattern or part)
end


-- Pattern → what it was compiled to, as long as somebody uses that: schemas say the same pattern many times.
local known = setmetatable({}, { __mode = "v" })


--- Compiles a pattern.
--- @param pattern string
--- @return cluster.host.Regex|nil re, or nil and Go's message: "error parsing regexp: missing closing ): `(a`"
function M.compile(pattern)
  local compiled, why = known[pattern], nil
  if not compiled then
    compiled, why = compile(pattern)
    known[pattern] = compiled
  end
  return compiled, why
end


return M
