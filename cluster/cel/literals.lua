--- The values that literals stand for: numbers, texts, bytes.
---
--- Rules: cel-go parser/{parser,unescape}.go.
local M = {}

local PLAIN = {
  a = "\a", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", v = "\v",
  ["\\"] = "\\", ["'"] = "'", ['"'] = '"', ["`"] = "`", ["?"] = "?",
}
local DIGITS = { x = 2, X = 2, u = 4, U = 8 }

local SURROGATE_MIN <const>, SURROGATE_MAX <const>, CODE_MAX <const> = 0xd800, 0xdfff, 0x10ffff


local function encode(code, bytes)
  if bytes then
    return string.char(code & 0xff)
  elseif code > CODE_MAX or code >= SURROGATE_MIN and code <= SURROGATE_MAX then
    error({ "invalid unicode code point" }, 0)
  end
  return utf8.char(code)
end


-- The escape at a backslash: what it stands for, and the byte behind it. The lexer has checked its digits.
local function take_escape(text, at, bytes)
  local letter = text:sub(at + 1, at + 1)
  local plain = PLAIN[letter]
  if plain then
    return plain, at + 2
  end
  local count = DIGITS[letter]
  if count then
    if bytes and count > 2 then
      error({ "unable to unescape string" }, 0)
    end
    local stop = at + 2 + count
    return encode(tonumber(text:sub(at + 2, stop - 1), 16), bytes), stop
  end
  return encode(tonumber(text:sub(at + 1, at + 3), 8), bytes), at + 4
end


local function unescape(text, bytes)
  local out, at = {}, 1
  while true do
    local stop = text:find("\\", at, true)
    out[#out + 1] = text:sub(at, (stop or 0) - 1)
    if not stop then
      return table.concat(out)
    end
    out[#out + 1], at = take_escape(text, stop, bytes)
  end
end


--- The content of a literal in quotes, with its prefix.
--- @param literal string r"a", '''b''', b"\xff"
--- @return string|nil text
--- @return string? message
function M.text(literal)
  local bytes, raw, quoted = literal:gsub("\r\n?", "\n"):match "^([bB]?)([rR]?)(.*)$"
  local size = (quoted:find('^"""') or quoted:find("^'''")) and #quoted >= 6 and 3 or 1
  local content = quoted:sub(size + 1, -size - 1)
  if raw ~= "" then
    return content
  end
  local ok, result = pcall(unescape, content, bytes ~= "")
  if ok then
    return result
  elseif type(result) == "table" then
    return nil, result[1]
  end
  error(result, 0)
end


-- Digits as an unsigned integer of 64 bits; nil when there are too many.
local function read_unsigned(digits, base)
  digits = digits:gsub("^0+", "")
  if base == 16 then
    return #digits <= 16 and (math.tointeger(tonumber("0x" .. digits)) or 0) or nil
  end
  if #digits < 19 then
    return math.tointeger(tonumber("0" .. digits))
  elseif #digits > 20 or #digits == 20 and digits > "18446744073709551615" then
    return nil
  end
  local value = 0
  for digit in digits:gmatch "%d" do
    value = value * 10 + (digit:byte() - 48)
  end
  return value
end


local function unsigned(text)
  local hexadecimal = text:match "^0x(.*)$"
  return read_unsigned(hexadecimal or text, hexadecimal and 16 or 10)
end


--- @param text string digits, or 0x and hexadecimal ones
--- @param negative boolean whether a '-' stands before
--- @return integer|nil
function M.int(text, negative)
  local value = unsigned(text)
  if not value or value < 0 and not (negative and value == math.mininteger) then
    return nil
  end
  return negative and -value or value
end


--- @param text string with the u behind
--- @return integer|nil bits of the unsigned integer
function M.uint(text)
  return unsigned(text:sub(1, -2))
end


--- @return number|nil nil when it is beyond all doubles
function M.double(text, negative)
  local value = tonumber(text) + 0.0
  if value == math.huge then
    return nil
  end
  return negative and -value or value
end


return M
