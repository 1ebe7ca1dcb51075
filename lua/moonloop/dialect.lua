-- Makes of Go's regular expressions those of RE2, which reads a few in another way: so an expression means for scripts
-- and for the embedded server what it means for an API server (docs/decisions/0032-re2.md).
--
-- Rules: regexp/syntax/parse.go.
local M = {}

local DEPTH_MAX = 1000 -- of groups
local SHOWN_MAX = 100

-- Of a script's pattern. RE2 cannot be interrupted while it reads one: so many bytes take it up to 20 ms and 8 MiB, as
-- what takes longer than its length tells counts for more.
local WEIGHT_MAX, CLASS_WEIGHT, REPEAT_WEIGHT = 1024, 30, 10

local function count(text, pattern)
  return select(2, text:gsub(pattern, ""))
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


-- Takes the names off the groups: the RE2 of Debian 12 does not know "(?<name>", and none takes a name twice.
local function without_names(pattern)
  local parts, names, copied, at, depth, groups = {}, {}, 1, 1, 0, 0
  while true do
    at = pattern:find("[\\%[()]", at)
    if not at then
      return table.concat(parts) .. pattern:sub(copied), names
    end
    local char, from = pattern:sub(at, at), at
    if char == "\\" then
      at = skip_escape(pattern, from)
      if not at then
        return nil, "invalid escape sequence", "\\C"
      end
    elseif char == "[" then
      at = skip_class(pattern, from)
    else
      at = from + 1
      depth = depth + (char == "(" and 1 or -1)
      if depth > DEPTH_MAX then
        return nil, "expression nests too deeply", pattern
      end
      local name, stop = pattern:match("^%(%?P?<([^>]*)>?()", from)
      if name and not pattern:sub(from, stop - 1):find "^%(%?P?<[%w_]+>$" then
        return nil, "invalid named capture", pattern:sub(from, stop - 1)
      elseif name then
        parts[#parts + 1] = pattern:sub(copied, from)
        copied, at = stop, stop
      end
      if name or char == "(" and pattern:sub(at, at) ~= "?" then
        groups = groups + 1
        names[groups] = name
      end
    end
  end
end


--- Is the pattern of a script too long? In words, if so.
---@param pattern string
---@return string? why
function M.too_long(pattern)
  local weight = #pattern
  if weight <= WEIGHT_MAX then
    weight = weight + CLASS_WEIGHT * count(pattern, "\\[pP]") + REPEAT_WEIGHT * count(pattern, "{%d")
  end
  if weight > WEIGHT_MAX then
    return ("too long: %d; at most %d bytes, where each \\p counts for %d more and each {…} for %d more: use several, "
      .. "one after the other"):format(weight, WEIGHT_MAX, CLASS_WEIGHT, REPEAT_WEIGHT)
  end
end


--- The expression as RE2 has to get it.
---@param pattern string in the syntax of Go's regexp
---@return string? plain without the names of groups; nil: it is no expression
---@return table<integer, string>|string names of groups by their numbers; or why, in Go's words
---@return string? part of the pattern that is wrong
function M.translate(pattern)
  if not utf8.len(pattern) then
    return nil, "invalid UTF-8", pattern
  elseif #pattern > DEPTH_MAX or pattern:find "%(%?P?<" or pattern:find("\\C", 1, true) then
    return without_names(pattern)
  end
  return pattern, {}
end


-- Lua's classes, for those who know string.match.
local CLASSES = {
  a = "[[:alpha:]]", c = "[[:cntrl:]]", d = "\\d", g = "[[:graph:]]", l = "[[:lower:]]", p = "[[:punct:]]", s = "\\s",
  u = "[[:upper:]]", w = "[[:alnum:]]", x = "[[:xdigit:]]", A = "[^[:alpha:]]", D = "\\D", S = "\\S",
  W = "[^[:alnum:]]",
}

--- "'%d' is of Lua's patterns; here it is '\d'", for a pattern that has one of Lua's classes.
---@param pattern string
---@return string? hint
function M.hint(pattern)
  for letter in pattern:gmatch "%f[%%\\]%%(%a)" do
    if CLASSES[letter] then
      return ("'%%%s' is of Lua's patterns; here it is '%s'"):format(letter, CLASSES[letter])
    end
  end
end


--- Why a script cannot use the pattern, in words for its author.
---@param pattern string
---@param reason string Go's words
---@param part string the part of it that is wrong; "": all
---@return string why
function M.problem(pattern, reason, part)
  if not utf8.len(part) then
    part = ""
  elseif #part > SHOWN_MAX then
    part = part:sub(1, utf8.offset(part, 0, SHOWN_MAX + 1) - 1) .. "…"
  end
  local hint = M.hint(pattern)
  return reason .. (part ~= "" and (" at '%s'"):format(part) or "") .. (hint and "; " .. hint or "")
end


return M
