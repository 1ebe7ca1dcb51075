--- The tokens of a Lua source text, for calls.lua and cluster.analysis.fields. The sandbox has compiled the text
--- before, so this only has to tell names, strings and symbols apart; it leaves comments out.
local M = {}

-- The content of a long bracket that opens at `at`, and where it ends; nil: none opens there.
local function long_bracket(text, at)
  local level = text:match("^%[(=*)%[", at)
  if not level then
    return nil
  end
  local first = at + #level + 2
  local from, to = text:find("]" .. level .. "]", first, true)
  return text:sub(first, (from or #text + 1) - 1), to or #text
end


-- Where the quoted string ends that opens at `at`.
local function quoted_end(text, at)
  local quote, position = text:sub(at, at), at + 1
  while position <= #text do
    local char = text:sub(position, position)
    if char == quote then
      return position
    end
    position = position + (char == "\\" and 2 or 1)
  end
  return #text
end


local function skip_comment(text, at)
  local _, to = long_bracket(text, at + 2)
  return (to or (text:find("\n", at, true) or #text + 1) - 1) + 1
end


-- The token at `at`, which is no space: its type, its text, and where the next one begins.
local function token_at(text, at)
  local name = text:match("^[%a_][%w_]*", at)
  if name then
    return "name", name, at + #name
  end
  if text:find("^[\"']", at) then
    local to = quoted_end(text, at)
    return "string", text:sub(at + 1, to - 1), to + 1
  end
  local content, to = long_bracket(text, at)
  if content then
    return "string", content, to + 1
  end
  local number = text:match("^%.?%d[%w.]*", at)
  if number then
    return "number", number, at + #number
  end
  local symbol = text:match("^%.%.%.?", at) or text:match("^[=~<>]=", at) or text:match("^::", at) or text:sub(at, at)
  return "symbol", symbol, at + #symbol
end


--- @return table list of { type = "name"|"string"|"number"|"symbol", text =, line = }; strings with their escapes as
---   they stand
function M.tokens(text)
  local list, at, line, counted_to = {}, 1, 1, 1
  while true do
    at = text:find("%S", at)
    if not at then
      return list
    elseif text:find("^%-%-", at) then
      at = skip_comment(text, at)
    else
      line, counted_to = line + select(2, text:sub(counted_to, at - 1):gsub("\n", "")), at
      local kind, content, next_at = token_at(text, at)
      list[#list + 1], at = { type = kind, text = content, line = line }, next_at
    end
  end
end


return M
