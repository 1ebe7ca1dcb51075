--- Splits an expression into tokens.
---
--- A token is { kind, text, at }: `kind` is an operator or a keyword itself ("&&", "in", "true"), or one of NUM_INT,
--- NUM_UINT, NUM_FLOAT, STRING, BYTES, IDENTIFIER, ESC_IDENTIFIER, "<EOF>". Rules: cel-go parser/gen/CEL.g4.
local M = {}

local KEYWORDS = { ["in"] = true, ["true"] = true, ["false"] = true, ["null"] = true }

local TWO = { ["=="] = true, ["!="] = true, ["<="] = true, [">="] = true, ["&&"] = true, ["||"] = true }
local ONE = "[%[%]{}().,%-!?:+*/%%<>]"

-- Each byte of a text in quotes is one of these, up to the quotes that end it.
local PLAIN = { ['"'] = '^[^\\"\n\r]+()', ["'"] = "^[^\\'\n\r]+()" }
local ESCAPES = { "^\\[abfnrtv\"'\\?`]()", "^\\[0-3][0-7][0-7]()", "^\\[xX]%x%x()", "^\\u%x%x%x%x()",
  "^\\U%x%x%x%x%x%x%x%x()" }


local function skip_escape(text, at)
  for _, shape in ipairs(ESCAPES) do
    local stop = text:match(shape, at)
    if stop then
      return stop
    end
  end
  return nil
end


-- Behind """: the byte behind the quotes that end it; nil when nothing ends it.
local function skip_triple(text, at, quotes, raw)
  while at <= #text do
    if text:sub(at, at + 2) == quotes then
      return at + 3
    elseif not raw and text:byte(at) == 92 then
      at = skip_escape(text, at)
      if not at then
        return nil
      end
    else
      at = at + 1
    end
  end
  return nil
end


local function skip_single(text, at, quote, raw)
  if raw then
    return text:match("^[^" .. quote .. "\n\r]*" .. quote .. "()", at)
  end
  while at do
    if text:sub(at, at) == quote then
      return at + 1
    end
    at = text:match(PLAIN[quote], at) or text:byte(at) == 92 and skip_escape(text, at) or nil
  end
  return nil
end


-- Behind the prefix: the byte behind a text in quotes; nil when it is none.
local function skip_quoted(text, at, raw)
  local quotes = text:match('^"""', at) or text:match("^'''", at)
  if quotes then
    local stop = skip_triple(text, at + 3, quotes, raw)
    if stop then
      return stop
    end
  end
  local quote = text:match("^[\"']", at)
  return quote and skip_single(text, at + 1, quote, raw)
end


local function take_quoted(text, at)
  local bytes, raw, start = text:match("^([bB]?)([rR]?)()", at)
  local stop = skip_quoted(text, start, raw ~= "")
  return stop, bytes ~= "" and "BYTES" or "STRING"
end


local function take_number(text, at)
  local stop = text:match("^%d+%.%d+[eE][-+]?%d+()", at) or text:match("^%d+%.%d+()", at)
    or text:match("^%d+[eE][-+]?%d+()", at) or text:match("^%.%d+[eE][-+]?%d+()", at) or text:match("^%.%d+()", at)
  if stop then
    return stop, "NUM_FLOAT"
  end
  stop = text:match("^0x%x+()", at) or text:match("^%d+()", at)
  if stop then
    local unsigned = text:match("^[uU]()", stop)
    return unsigned or stop, unsigned and "NUM_UINT" or "NUM_INT"
  end
  return nil
end


local function take_word(text, at)
  local stop = text:match("^[%a_][%w_]*()", at)
  if stop then
    local word = text:sub(at, stop - 1)
    return stop, KEYWORDS[word] and word or "IDENTIFIER"
  end
  stop = text:match("^`[%w_.%-/ ]+`()", at)
  return stop, stop and "ESC_IDENTIFIER"
end


local function take_operator(text, at)
  local two = text:sub(at, at + 1)
  if TWO[two] then
    return at + 2, two
  end
  local one = text:match("^" .. ONE, at)
  return one and at + 1, one
end


-- Go writes what it cannot read as it is, but for the ends of lines.
local function show(piece)
  return (piece:gsub("\n", "\\n"):gsub("\t", "\\t"):gsub("\r", "\\r"))
end


-- How far an escape that is none reads as one: the digits that may follow each letter.
local DIGITS = { x = "^%x%x?", X = "^%x%x?", u = "^%x%x?%x?%x?", U = "^%x%x?%x?%x?%x?%x?%x?%x?" }


-- The byte that no text in quotes can have: the end of a line, or within an escape; behind the last at the end.
local function bad_byte(text, at, quote)
  while at <= #text do
    local plain = text:match(PLAIN[quote], at)
    if plain then
      at = plain
    elseif text:byte(at) ~= 92 then
      return at
    else
      local stop = skip_escape(text, at)
      if not stop then
        local letter = text:sub(at + 1, at + 1)
        local digits = DIGITS[letter] and (text:match(DIGITS[letter], at + 2) or "")
          or text:match("^[0-3][0-7]?", at + 1) and text:match("^[0-3]([0-7]?)", at + 1)
        return at + 1 + (digits and 1 + #digits or 0)
      end
      at = stop
    end
  end
  return at
end


-- The last byte of what is no token: as much as could have become one, and the character that could not.
local function bad_end(text, at)
  local quote, next_at = text:match("^[\"']", at), at
  if quote then
    next_at = bad_byte(text, at + 1, quote)
  elseif text:find("^[&|=]", at) then
    next_at = at + 1
  end
  local char = text:match("^" .. utf8.charpattern, next_at)
  return math.min(next_at + math.max(char and #char or 1, 1) - 1, #text)
end


local function refuse(text, at, issues)
  local stop = bad_end(text, at)
  issues:add(at, ("Syntax error: token recognition error at: '%s'"):format(show(text:sub(at, stop))))
  return stop + 1
end


--- @param text string
--- @param issues table where mistakes are added
--- @return table tokens the last one is "<EOF>"
function M.tokens(text, issues)
  local tokens, at = {}, 1
  while true do
    at = text:match("^[ \t\r\n\f]+()", at) or at
    local comment = text:match("^//[^\n]*()", at)
    if comment then
      at = comment
    elseif at > #text then
      break
    else
      local stop, kind = take_quoted(text, at)
      if not stop then
        stop, kind = take_number(text, at)
      end
      if not stop then
        stop, kind = take_word(text, at)
      end
      if not stop then
        stop, kind = take_operator(text, at)
      end
      if stop then
        tokens[#tokens + 1] = { kind = kind, text = text:sub(at, stop - 1), at = at }
        at = stop
      else
        at = refuse(text, at, issues)
      end
    end
  end
  tokens[#tokens + 1] = { kind = "<EOF>", text = "<EOF>", at = at }
  return tokens
end


return M
