--- The tokens of a Lua source text. The text compiles: the sandbox has loaded it before.
local M = {}

local ESCAPES = {
  a = "\a", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", v = "\v", ["\\"] = "\\", ['"'] = '"', ["'"] = "'",
  ["\n"] = "\n",
}
local MINUS = ("-"):byte()

-- By the byte that they begin with: names, the symbols of one byte that no longer one begins with, and the longer
-- symbols, the longest first.
local NAMES, SINGLES, LONGER = {}, {}, {}
for byte = 1, 127 do
  local char = string.char(byte)
  NAMES[byte] = char:find "^[%a_]" ~= nil
  SINGLES[byte] = char:find "^[-+*%%^#&|(){};,]" and char or nil
end
for symbol in ("... .. == ~= <= >= // << >> ::"):gmatch "%S+" do
  local list = LONGER[symbol:byte()] or {}
  LONGER[symbol:byte()] = list
  list[#list + 1] = symbol
end

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


-- The character of the escape behind the backslash at `at`, and where the next one begins.
local function escape(text, at)
  local char = text:sub(at + 1, at + 1)
  if char == "z" then
    return "", text:find("%S", at + 2) or #text + 1
  elseif char == "x" then
    return string.char(tonumber(text:sub(at + 2, at + 3), 16) or 0), at + 4
  elseif char == "u" then
    local digits = text:match("^{(%x+)}", at + 2) or "0"
    return utf8.char(tonumber(digits, 16) & 0x7fffffff), at + 4 + #digits
  end
  local digits = text:match("^%d%d?%d?", at + 1)
  if digits then
    return string.char(tonumber(digits) & 255), at + 1 + #digits
  end
  return ESCAPES[char] or char, at + 2
end


-- The value of the quoted string that opens at `at`, and where it ends.
local function quoted(text, at)
  local quote, first, position, parts = text:sub(at, at), at + 1, at + 1, {}
  while true do
    local found = text:find("[\\" .. quote .. "]", position)
    if not found or text:byte(found) ~= 92 then
      parts[#parts + 1] = text:sub(first, (found or #text + 1) - 1)
      return table.concat(parts), found or #text
    end
    parts[#parts + 1] = text:sub(first, found - 1)
    parts[#parts + 1], position = escape(text, found)
    first = position
  end
end


local function skip_comment(text, at)
  local _, to = long_bracket(text, at + 2)
  return (to or (text:find("\n", at, true) or #text + 1) - 1) + 1
end


local function number_at(text, at)
  return text:match("^0[xX][%x.]*[pP][+-]?%d+", at) or text:match("^0[xX][%x.]+", at)
    or text:match("^%d*%.?%d*[eE][+-]?%d+", at) or text:match("^%d*%.?%d*", at)
end


-- Where the next token begins, over spaces and comments; nil: there is none.
local function find_token(text, at)
  at = text:find("%S", at)
  while at and text:byte(at) == MINUS and text:byte(at + 1) == MINUS do
    at = text:find("%S", skip_comment(text, at))
  end
  return at
end


-- The token at `at`, which is no space: its type, its text, and where the next one begins.
local function token_at(text, at)
  local byte = text:byte(at)
  if NAMES[byte] then
    local name = text:match("^[%w_]+", at)
    return "name", name, at + #name
  elseif SINGLES[byte] then
    return "symbol", SINGLES[byte], at + 1
  end
  if text:find("^[\"']", at) then
    local value, to = quoted(text, at)
    return "string", value, to + 1
  end
  local content, to = long_bracket(text, at)
  if content then
    return "string", content:gsub("^\r?\n", "", 1), to + 1
  end
  if text:find("^%.?%d", at) then
    local number = number_at(text, at)
    return "number", number, at + #number
  end
  for _, symbol in ipairs(LONGER[byte] or {}) do
    if text:sub(at, at + #symbol - 1) == symbol then
      return "symbol", symbol, at + #symbol
    end
  end
  return "symbol", text:sub(at, at), at + 1
end


local Reader = {}
Reader.__index = Reader

-- Goes on to where the next token begins, over spaces and comments.
function Reader:skip()
  local text = self.source
  self.begin = find_token(text, self.behind) or #text + 1
  while self.newline < self.begin do
    self.line, self.newline = self.line + 1, text:find("\n", self.newline + 1, true) or math.huge
  end
end


--- Reads the next token: `type` is "name", "string", "number" or "symbol", `text` what stands there (of a string, its
--- value), and `line` where it begins. At the end of the text all are nil but `line`.
function Reader:next()
  self:skip()
  if self.begin > #self.source then
    self.type, self.text = nil, nil
  else
    self.type, self.text, self.behind = token_at(self.source, self.begin)
  end
end


--- Is the token behind this one that symbol, "="?
function Reader:is_followed_by(symbol)
  local at = find_token(self.source, self.behind)
  if not at then
    return false
  end
  local kind, found = token_at(self.source, at)
  return kind == "symbol" and found == symbol
end


--- A reader of a text, before its first token.
function M.reader(text)
  local behind = text:sub(1, 1) == "#" and (text:find("\n", 1, true) or #text + 1) or 1
  local newline = text:find("\n", 1, true) or math.huge -- the next one, behind which another line begins
  return setmetatable({ source = text, behind = behind, begin = 1, line = 1, newline = newline }, Reader)
end


--- @param text string
--- @return table list of { type =, text =, line = }, as a reader has them
function M.tokens(text)
  local list, reader = {}, M.reader(text)
  reader:next()
  while reader.type do
    list[#list + 1] = { type = reader.type, text = reader.text, line = reader.line }
    reader:next()
  end
  return list
end


return M
