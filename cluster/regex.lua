--- Regular expressions in the syntax of Go's regexp (RE2), matched by PCRE2: see docs/decisions/0005-pcre2.md.
---
--- A pattern is translated: what Go refuses is refused with Go's message, what PCRE2 would read in another way is
--- written otherwise. Groups do not capture, because nobody asks for them. Rules: regexp/syntax/parse.go.
local host = require "cluster.host"

local M = {}

local COUNT_MAX = 1000 -- of one repetition, and of nested ones multiplied
local DEPTH_MAX = 1000 -- of groups

-- Go's \s has no \v.
local SPACE = "\\t\\n\\f\\r\\x20"
local NO_SPACE = "\\x00-\\x08\\x0b\\x0e-\\x1f\\x21-\\x{10ffff}"

local ESCAPED = { a = 7, f = 12, n = 10, r = 13, t = 9, v = 11 }

local POSIX = {
  alnum = true, alpha = true, ascii = true, blank = true, cntrl = true, digit = true, graph = true, lower = true,
  print = true, punct = true, space = true, upper = true, word = true, xdigit = true,
}

-- Assertions that PCRE2 repeats only within a group, so they are put in one.
local ASSERTIONS = { ["\\A"] = true, ["\\z"] = true, ["\\b"] = true, ["\\B"] = true }

-- A translation:
--   text, at      the pattern, and the place of the next byte
--   out           pieces of the pattern for PCRE2
--   repeatable    this alternative has an item that can be repeated
--   repeats       where the repetition just read begins, or nil
--   item          the repeat count of the last item, multiplied by those nested in it
--   highest       the highest `item` of each open group, from depth 0
--   depth
local Translation = {}
Translation.__index = Translation


-- Raises Go's message about the part of the pattern from `from` to before `to`.
function Translation:refuse(what, from, to)
  error({ ("error parsing regexp: %s: `%s`"):format(what, self.text:sub(from, to - 1)) }, 0)
end


function Translation:refuse_all(what)
  self:refuse(what, 1, #self.text + 1)
end


function Translation:put(text)
  self.out[#self.out + 1] = text
end


-- A character that stands for itself, within a class or not.
function Translation:put_character(code)
  local char = code < 0x80 and string.char(code) or ""
  self:put(char:find "%w" and char or ("\\x{%x}"):format(code))
end


-- Passes the text that the Lua pattern matches here, and returns it; else nil.
function Translation:pass(shape)
  local part, stop = self.text:match("^(" .. shape .. ")()", self.at)
  self.at = stop or self.at
  return part
end


-- The next character, or nil at the end.
function Translation:take()
  return self:pass(utf8.charpattern)
end


-- Where the literal text stands next from `from` on, or nil.
function Translation:find(literal, from)
  return (self.text:find(literal, from, true))
end


-- Characters, escapes and classes.

-- Behind "\x": two digits, or any number of them in braces. nil when it is neither.
function Translation:take_hexadecimal()
  local first = self:take()
  if first ~= "{" then
    local digits = first and first .. (self:take() or "") or ""
    return digits:find "^%x%x$" and tonumber(digits, 16)
  end
  local code
  for char in self.take, self do
    if char == "}" then
      return code
    end
    code = char:find "%x" and (code or 0) * 16 + tonumber(char, 16)
    if not code or code > 0x10ffff then
      return nil
    end
  end
end


-- Behind a backslash: the character that is meant, or nil.
function Translation:take_escaped()
  local octal = self:pass "[0-7][0-7][0-7]?" or self:pass "0"
  if octal then
    return tonumber(octal, 8)
  end
  local char = self:take()
  if char == "x" then
    return self:take_hexadecimal()
  end
  return ESCAPED[char] or #char == 1 and not char:find "%w" and char:byte() or nil
end


-- At a backslash that begins no class: the character that it means.
function Translation:take_escape()
  local from, stop = self.at, #self.text + 1
  self.at = from + 1
  if self.at == stop then
    self:refuse("trailing backslash at end of expression", stop, stop)
  end
  return self:take_escaped() or self:refuse("invalid escape sequence", from, self.at)
end


-- "\pL", "\p{Greek}", "\P{^L}". PCRE2 knows all properties of Go's but some synonyms.
function Translation:take_property()
  local from = self.at
  local property = self:pass "\\[pP]{[^}]*}?" or self:pass("\\[pP]" .. utf8.charpattern) or self:pass "\\[pP]"
  if property and not host.regex.compile(property) then
    self:refuse("invalid character class range", from, self.at)
  end
  return property
end


-- "\d", "\pL", within brackets or not. Returns whether there was one.
function Translation:take_class_escape(bracketed)
  local class = self:take_property() or self:pass "\\[dDwW]"
  local space = not class and self:pass "\\[sS]"
  if space then
    class = space == "\\s" and SPACE or NO_SPACE
    class = bracketed and class or "[" .. class .. "]"
  end
  if class then
    self:put(class)
  end
  return class ~= nil
end


-- "[:alpha:]". Returns whether there was one.
function Translation:take_posix()
  local from = self.at
  local close = self.text:find("^%[:", from) and self:find(":]", from + 2)
  if not close then
    return false
  end
  self.at = close + 2
  local name = self.text:sub(from + 2, close - 1)
  if not POSIX[name:gsub("^%^", "")] then
    self:refuse("invalid character class range", from, self.at)
  end
  self:put("[:" .. name .. ":]")
  return true
end


function Translation:take_class_character(class)
  if self.at > #self.text then
    self:refuse("missing closing ]", class, self.at)
  elseif self.text:find("^\\", self.at) then
    return self:take_escape()
  end
  return utf8.codepoint(self:take())
end


-- A character or a range of them.
function Translation:take_range(class)
  local from = self.at
  local low = self:take_class_character(class)
  self:put_character(low)
  if not self.text:find("^%-[^%]]", self.at) then
    return
  end
  self.at = self.at + 1
  local high = self:take_class_character(class)
  if high < low then
    self:refuse("invalid character class range", from, self.at)
  end
  self:put "-"
  self:put_character(high)
end


-- "[a-z]"
function Translation:take_class()
  local class = self.at
  self:put(self:pass "%[%^?")
  repeat
    if not self:take_posix() and not self:take_class_escape(true) then
      self:take_range(class)
    end
  until self:pass "%]"
  self:put "]"
end


-- Groups and repetitions.

-- The last item is complete.
function Translation:end_item()
  self.highest[self.depth] = math.max(self.highest[self.depth], self.item)
  self.item = 1
end


function Translation:begin_item()
  self:end_item()
  self.repeatable = true
end


function Translation:put_item(text)
  self:begin_item()
  self:put(text)
end


function Translation:open_group(opening)
  self:put(opening)
  self:end_item()
  if self.depth == DEPTH_MAX then
    self:refuse_all "expression nests too deeply"
  end
  self.depth = self.depth + 1
  self.highest[self.depth] = 1
  self.repeatable = false
end


function Translation:close_group()
  if self.depth == 0 then
    self:refuse_all "unexpected )"
  end
  self:end_item()
  local item = self.highest[self.depth]
  self.depth = self.depth - 1
  self.at = self.at + 1
  self:put_item ")"
  self.item = item
end


-- Behind "(?P<" and "(?<".
function Translation:take_group_name(from)
  local close = self:find(">", self.at)
  if not close then
    self:refuse("invalid named capture", from, #self.text + 1)
  elseif not self.text:sub(self.at, close - 1):find "^[%w_]+$" then
    self:refuse("invalid named capture", from, close + 1)
  end
  self.at = close + 1
  self:open_group "(?:"
end


-- Behind "(?": "i)", "i-s:", ":".
function Translation:take_flags(from)
  local shape = self.text:match("^[imsU]*%-[imsU]+[:)]", self.at) or self.text:match("^[imsU]*[:)]", self.at)
  if not shape then
    self:pass "[imsU]*"
    self:pass "%-[imsU]*"
    self:take()
    self:refuse("invalid or unsupported Perl syntax", from, self.at)
  end
  self.at = self.at + #shape
  if shape:find "%)" then
    self:put("(?" .. shape)
  else
    self:open_group("(?" .. shape)
  end
end


function Translation:take_group()
  local from = self.at
  if self.text:find("^%(%?P?<.", from) and self:pass "%(%?P?<" then
    self:take_group_name(from)
  elseif self:pass "%(%?" then
    self:take_flags(from)
  else
    self.at = from + 1
    self:open_group "(?:"
  end
end


-- "*", "{2,5}": the repetition from here to before `stop`, which may be followed by a '?'. `most` is nil when there is
-- no upper bound.
function Translation:take_repetition(stop, least, most)
  local from = self.at
  self.at = stop
  self:pass "%?"
  if self.repeats then
    self:refuse("invalid nested repetition operator", self.repeats, self.at)
  elseif not self.repeatable then
    self:refuse("missing argument to repetition operator", from, self.at)
  end
  self.item = self.item * math.max(most or least, 1)
  if math.max(least, most or 0) >= 2 and self.item > COUNT_MAX then
    self:refuse("invalid repeat count", from, self.at)
  end
  self:put(self.text:sub(from, self.at - 1))
  self.repeats = from
end


-- "{2}", "{2,}", "{2,5}"; any other brace is a literal.
function Translation:take_braces()
  local least, comma, most, stop = self.text:match("^{(%d+)(,?)(%d*)}()", self.at)
  if not least or least:find "^0%d" or most:find "^0%d" then
    self.at = self.at + 1
    self:put_item "\\{"
    return
  end
  least, most = tonumber(least), tonumber(most) or comma == "" and tonumber(least) or nil
  if math.max(least, most or 0) > COUNT_MAX or most and least > most then
    self:refuse("invalid repeat count", self.at, stop)
  end
  self:take_repetition(stop, least, most)
  if most == 0 then
    self.item = 1 -- an item repeated 0 times does not count
  end
end


-- "\Q…\E"
function Translation:take_quoted()
  local stop = self:find("\\E", self.at) or #self.text + 1
  while self.at < stop do
    self:begin_item()
    self:put_character(utf8.codepoint(self:take()))
  end
  self:pass "\\E"
end


function Translation:take_backslash()
  local two = self.text:sub(self.at, self.at + 1)
  if ASSERTIONS[two] then
    self.at = self.at + 2
    self:put_item("(?:" .. two .. ")")
  elseif two == "\\C" then
    self:refuse("invalid escape sequence", self.at, self.at + 2)
  elseif self:pass "\\Q" then
    self:take_quoted()
  else
    self:begin_item()
    if not self:take_class_escape(false) then
      self:put_character(self:take_escape())
    end
  end
end


local function repeat_any_number(translation)
  translation:take_repetition(translation.at + 1, 0, nil)
end


-- The functions for characters that have a meaning; any other character stands for itself.
local TAKE = {
  ["("] = Translation.take_group,
  [")"] = Translation.close_group,
  ["{"] = Translation.take_braces,
  ["\\"] = Translation.take_backslash,
  ["*"] = repeat_any_number,
  ["+"] = repeat_any_number,
  ["?"] = repeat_any_number,
  ["["] = function(self)
    self:begin_item()
    self:take_class()
  end,
  ["|"] = function(self)
    self:end_item()
    self:put(self:pass "|")
    self.repeatable = false
  end,
  ["."] = function(self)
    self:put_item(self:pass "%.")
  end,
  ["^"] = function(self)
    self:put_item("(?:" .. self:pass "%^" .. ")")
  end,
  ["$"] = function(self)
    self:put_item("(?:" .. self:pass "%$" .. ")")
  end,
}


function Translation:take_literal()
  self:begin_item()
  self:put_character(utf8.codepoint(self:take()))
end


-- The pattern in PCRE2's syntax.
function Translation:run()
  if not utf8.len(self.text) then
    self:refuse_all "invalid UTF-8"
  end
  while self.at <= #self.text do
    local before = self.repeats
    local take = TAKE[self.text:sub(self.at, self.at)] or self.take_literal
    take(self)
    if self.repeats == before then
      self.repeats = nil
    end
  end
  if self.depth > 0 then
    self:refuse_all "missing closing )"
  end
  return table.concat(self.out)
end


-- Pattern → what it was compiled to, as long as somebody uses that: schemas say the same pattern many times.
local known = setmetatable({}, { __mode = "v" })


local function translate(pattern)
  local translation = setmetatable({
    text = pattern, at = 1, out = {}, repeatable = false, item = 1, highest = { [0] = 0 }, depth = 0,
  }, Translation)
  local ok, result = pcall(translation.run, translation)
  if ok then
    return host.regex.compile(result)
  elseif type(result) == "table" then
    return nil, result[1]
  end
  error(result, 0)
end


--- Compiles a pattern.
--- @param pattern string
--- @return cluster.host.Regex|nil re, or nil and Go's message: "error parsing regexp: missing closing ): `(a`"
function M.compile(pattern)
  local compiled, why = known[pattern], nil
  if not compiled then
    compiled, why = translate(pattern)
    known[pattern] = compiled
  end
  return compiled, why
end


return M
