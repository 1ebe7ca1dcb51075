-- Regular expressions for scripts, in the syntax of CRDs' patterns: Go's regexp, matched by RE2 (codec/regex.h). The
-- host keeps the compiled ones (script/regex.c).
local _, host = ...
local dialect = require "moonloop.dialect"

local M = {}

local MATCH, FIND = "regex.match(text, pattern)", "regex.find(text, pattern [, init])"
local GMATCH, GSUB = "regex.gmatch(text, pattern)", "regex.gsub(text, pattern, replacement [, max])"

-- Why the pattern is none; nil: it is compiled now.
local function compile(pattern)
  local why = dialect.too_long(pattern)
  if why then
    return why
  end
  local plain, names, part = dialect.translate(pattern)
  if not plain then
    return dialect.problem(pattern, names, part)
  end
  local done, reason
  done, reason, part = host.regex_compile(pattern, plain, names)
  return not done and dialect.problem(pattern, reason, part) or nil
end


-- The names of the groups, and their number; or nil, and why the pattern cannot be looked for.
local function prepare(text, pattern)
  if type(text) ~= "string" then
    return nil, "text: expected a string, got a " .. type(text)
  elseif type(pattern) ~= "string" then
    return nil, "pattern: expected a string, got a " .. type(pattern)
  end
  local names, more = host.regex_ready(pattern, text)
  if names or more then
    return names, more
  end
  local why = compile(pattern)
  if why then
    return nil, "pattern: " .. why
  end
  return host.regex_ready(pattern, text)
end


-- The groups, or all when there are none, as string.match returns them.
local function captures(text, from, to, ...)
  if not from then
    return nil
  elseif select("#", ...) == 0 then
    return text:sub(from, to)
  end
  return ...
end


--- The groups of the first match, or all of it when there are none. false for a group that took no part.
---@param text string
---@param pattern string
---@return string|false? ... nil when nothing matches
function M.match(text, pattern)
  local names, why = prepare(text, pattern)
  if not names then
    error(("%s: %s"):format(MATCH, why), 2)
  end
  return captures(text, host.regex_next(pattern, text, 0))
end


-- Of groups with one name, the first that took part has it, as with Go's Expand.
local function found(names, from, to, ...)
  if not from then
    return nil
  end
  local groups = { ... }
  for index, text in ipairs(groups) do
    local name = names[index]
    if name then
      groups[name] = groups[name] or text
    end
  end
  return from, to, groups
end


--- The place of the first match, and its groups by number and by name.
---@param text string
---@param pattern string
---@param init? integer where a match may begin
---@return integer? from
---@return integer? to
---@return table<integer|string, string|false>? groups
function M.find(text, pattern, init)
  local names, why = prepare(text, pattern)
  local start = init == nil and 1 or math.tointeger(init)
  if not names or not start then
    error(("%s: %s"):format(FIND, names and "init: expected a whole number" or why), 2)
  elseif start < 0 then
    start = math.max(#text + start + 1, 1)
  end
  if start > #text + 1 then
    return nil
  end
  return found(names, host.regex_next(pattern, text, math.max(start, 1) - 1))
end


--- An iterator over all matches, which gives what match returns.
---@param text string
---@param pattern string
---@return fun(): string|false? ...
function M.gmatch(text, pattern)
  local names, problem = prepare(text, pattern)
  if not names then
    error(("%s: %s"):format(GMATCH, problem), 2)
  end
  local at, before = 0, nil
  local function move(from, to, ...)
    at, before = to or #text + 1, to
    return captures(text, from, to, ...)
  end
  return function()
    prepare(text, pattern) -- other expressions may have taken its place
    return move(host.regex_next(pattern, text, at, before))
  end
end


-- {{{ gsub

-- The numbers of the groups with a name or a number; nil and why.
local function groups_of(name, names, count)
  local number, list = tonumber(name, 10), {}
  if number and number <= count then
    return { number }
  end
  for index = 1, count do
    list[#list + 1] = names[index] == name and index or nil
  end
  if #list > 0 then
    return list
  end
  local digits, rest = name:match "^(%d+)(.+)$"
  return nil, digits and ("replacement: there is no group '%s'; did you mean '${%s}%s'?"):format(name, digits, rest)
    or ("replacement: there is no group '%s' in the pattern"):format(name)
end


-- A template as a list of texts and of lists of groups; nil and why.
local function parts_of(template, names, count)
  local parts, at = {}, 1
  while true do
    local dollar = template:find("$", at, true)
    parts[#parts + 1] = template:sub(at, (dollar or 0) - 1)
    if not dollar then
      return parts
    end
    local name, stop = template:match("^([%w_]+)()", dollar + 1)
    if not name then
      name, stop = template:match("^{([%w_]+)}()", dollar + 1)
    end
    if name then
      local groups, why = groups_of(name, names, count)
      if not groups then
        return nil, why
      end
      parts[#parts + 1] = groups
    elseif template:sub(dollar + 1, dollar + 1) == "$" then
      parts[#parts + 1], stop = "$", dollar + 2
    else
      return nil, "replacement: behind a '$' stands a group, as in $1 or ${name}; '$' itself is '$$'"
    end
    at = stop
  end
end


local function fill(parts, match)
  local out = {}
  for index, part in ipairs(parts) do
    local text = part
    if type(part) == "table" then
      text = ""
      for _, group in ipairs(part) do
        text = text == "" and match[group] or text
      end
    end
    out[index] = text
  end
  return table.concat(out)
end


-- match → what takes its place; nil or false: itself. Or nil and why.
local function replacer(replacement, names, count)
  local kind = type(replacement)
  if kind == "function" then
    return function(match)
      return replacement(captures(match[0], 1, -1, table.unpack(match, 1, count)))
    end
  elseif kind == "table" then
    return function(match)
      return replacement[count > 0 and match[1] or match[0]]
    end
  elseif kind ~= "string" then
    return nil, "replacement: expected a string, a table or a function, got a " .. kind
  end
  local parts, why = parts_of(replacement, names, count)
  return parts and function(match)
    return fill(parts, match)
  end, why
end


--- The text with each match replaced.
---@param text string
---@param pattern string
---@param replacement string|table|function
---@param max? integer
---@return string text
---@return integer count of matches
function M.gsub(text, pattern, replacement, max)
  local names, more = prepare(text, pattern)
  local most, replace, why = max == nil and math.huge or math.tointeger(max), nil, more
  if names then
    replace, why = replacer(replacement, names, more)
  end
  if not replace or not most then
    error(("%s: %s"):format(GSUB, why or "max: expected a whole number"), 2)
  end
  local pieces, count, at, before = {}, 0, 0, nil
  while count < most do
    prepare(text, pattern) -- other expressions may have taken its place
    local match = table.pack(host.regex_next(pattern, text, at, before))
    local from, to = match[1], match[2]
    if not from then
      break
    end
    table.move(match, 3, match.n, 1)
    match[0] = text:sub(from, to)
    local new = replace(match) or match[0]
    if type(new) ~= "string" and type(new) ~= "number" then
      error(("%s: replacement: expected a string for '%s', got a %s"):format(GSUB, match[0]:sub(1, 100), type(new)), 2)
    end
    pieces[#pieces + 1] = text:sub(at + 1, from - 1)
    pieces[#pieces + 1] = new
    count, at, before = count + 1, to, to
  end
  pieces[#pieces + 1] = text:sub(at + 1)
  return table.concat(pieces), count
end


-- }}}

--- A pattern that matches the text and nothing else.
---@param text string
---@return string pattern
function M.quote(text)
  if type(text) ~= "string" then
    error("regex.quote(text): expected a string, got a " .. type(text), 2)
  end
  return (text:gsub("[\\.+*?()|%[%]{}^$]", "\\%0"))
end


return M
