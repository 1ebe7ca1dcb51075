--- Texts as characters: places are counted from 0.
local M = {}

-- The characters that Go's strings.TrimSpace takes for white space, beside those of ASCII.
local SPACES = {}
for _, code in ipairs { 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000 } do
  SPACES[utf8.char(code)] = true
end
for code = 0x2000, 0x200a do
  SPACES[utf8.char(code)] = true
end

local QUOTED = {
  ["\a"] = "\\a", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\v"] = "\\v",
  ["\\"] = "\\\\", ['"'] = '\\"',
}


--- How many characters.
function M.size(text)
  return utf8.len(text, 1, -1, true) or #text
end


--- The byte where a character begins; one behind the last for the place behind the text.
function M.byte_of(text, index)
  return utf8.offset(text, index + 1) or #text + 1
end


--- The characters from one place to before another.
function M.sub(text, from, to)
  return text:sub(M.byte_of(text, from), M.byte_of(text, to) - 1)
end


--- Letters of ASCII in lower case.
function M.lower(text)
  return (text:gsub("%u", string.lower))
end


--- Letters of ASCII in upper case.
function M.upper(text)
  return (text:gsub("%l", string.upper))
end


--- Without white space at both ends.
function M.trim(text)
  local from, to = 1, #text
  while from <= to do
    local char = text:match("^" .. utf8.charpattern, from)
    if not (char:find "^%s$" or SPACES[char]) then
      break
    end
    from = from + #char
  end
  while from <= to do
    local at = utf8.offset(text, -1, to + 1)
    local char = text:sub(at, to)
    if not (char:find "^%s$" or SPACES[char]) then
      break
    end
    to = at - 1
  end
  return text:sub(from, to)
end


--- With what is no UTF-8 replaced.
function M.valid(text)
  if utf8.len(text) then
    return text
  end
  local out, at = {}, 1
  while at <= #text do
    local _, bad = utf8.len(text, at)
    out[#out + 1] = text:sub(at, (bad or #text + 1) - 1)
    if bad then
      out[#out + 1] = "\u{fffd}"
    end
    at = (bad or #text) + 1
  end
  return table.concat(out)
end


--- In double quotes, as an expression would have it.
function M.quote(text)
  return '"' .. M.valid(text):gsub('[\a\b\f\n\r\t\v\\"]', QUOTED) .. '"'
end


return M
