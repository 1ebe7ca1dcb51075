--- "%s has %d".format([a, b]).
---
--- Version 2 of the library, which Kubernetes has, writes %f and %e as one does in the United States: 1,234.500000 and
--- 1.5 × 10³. Rules: cel-go ext/formatting.go.
local floats = require "cluster.cel.floats"
local frames = require "cluster.cel.frame"
local numbers = require "cluster.cel.numbers"
local times = require "cluster.cel.times"
local values = require "cluster.cel.values"

local M = {}

local PRECISION = 6
local PRECISION_MAX = 99 -- digits that Lua's string.format writes

M.REFUSED = {
  string = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    .. "timestamps, was given %s",
  decimal = "decimal clause can only be used on integers, was given %s",
  fixed = "fixed-point clause can only be used on doubles, was given %s",
  scientific = "scientific clause can only be used on doubles, was given %s",
  binary = "only integers and bools can be formatted as binary, was given %s",
  hexadecimal = "only integers, byte buffers, and strings can be formatted as hex, was given %s",
  octal = "octal clause can only be used on integers, was given %s",
}


-- Raises; M.format returns it.
local function refuse(clause, value)
  error({ "error during formatting: " .. M.REFUSED[clause]:format(values.type_name(value)) }, 0)
end


local function quote(text)
  return '"' .. text:gsub('[\\"]', "\\%0"):gsub("\n", "\\n"):gsub("\t", "\\t"):gsub("\r", "\\r") .. '"'
end


-- Elements of lists and maps, as an expression would have them.
local element_text


local function list_text(list)
  local texts = {}
  for i, element in ipairs(values.elements(list)) do
    texts[i] = element_text(element)
  end
  return "[" .. table.concat(texts, ", ") .. "]"
end


local KEYS = { string = true, bool = true, int = true, uint = true }


local function map_text(map)
  local entries = {}
  for i, key in ipairs(values.keys(map)) do
    if not KEYS[values.tag(key)] then
      error({ "error during formatting: no formatting function for map key of type " .. values.type_name(key) }, 0)
    end
    entries[i] = { element_text(key), element_text(values.lookup(map, key)) }
  end
  table.sort(entries, function(a, b)
    return a[1] < b[1]
  end)
  for i, entry in ipairs(entries) do
    entries[i] = entry[1] .. ":" .. entry[2]
  end
  return "{" .. table.concat(entries, ", ") .. "}"
end


local ELEMENT = {
  string = quote,
  bytes = function(value)
    return "b" .. quote(value.text)
  end,
  double = function(value)
    if value ~= value or value == math.huge or value == -math.huge then
      return quote(floats.plain(value))
    end
    return ("%.6f"):format(value)
  end,
  timestamp = function(value)
    return ("timestamp(%s)"):format(quote(times.timestamp_text(value)))
  end,
  duration = function(value)
    return ("duration(%s)"):format(quote(times.duration_text(value)))
  end,
}

local PLAIN = {
  list = list_text,
  map = map_text,
  int = tostring,
  uint = numbers.uint_to_text,
  double = floats.general,
  bool = tostring,
  string = function(value)
    return value
  end,
  bytes = function(value)
    return value.text
  end,
  timestamp = times.timestamp_text,
  duration = times.duration_text,
  type = function(value)
    return value.name
  end,
  null = function()
    return "null"
  end,
}


function element_text(value)
  frames.visit(1)
  local tag = values.tag(value)
  local write = ELEMENT[tag] or PLAIN[tag]
  if not write then
    error({ "error during formatting: no formatting function for " .. values.type_name(value) }, 0)
  end
  return write(value)
end


-- Clauses.

local NAMED = { NaN = 0 / 0, Infinity = math.huge, ["-Infinity"] = -math.huge }


local function number_of(clause, value)
  if math.type(value) == "float" then
    return value
  elseif type(value) == "string" and NAMED[value] then
    return NAMED[value]
  end
  return refuse(clause, value)
end


local function special(number)
  if number ~= number then
    return "NaN"
  elseif number == math.huge then
    return "∞"
  elseif number == -math.huge then
    return "-∞"
  end
  return nil
end


local SUPERSCRIPT = { [0] = "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" }


local function base_text(bits, base)
  local digits = {}
  repeat
    table.insert(digits, 1, ("%x"):format(bits & (base - 1)))
    bits = bits >> (base == 2 and 1 or base == 8 and 3 or 4)
  until bits == 0
  return table.concat(digits)
end


-- An integer in another base, with a sign; nil for what is none.
local function integer_text(value, base)
  if math.type(value) == "integer" then
    return (value < 0 and "-" or "") .. base_text(value < 0 and -value or value, base)
  elseif values.tag(value) == "uint" then
    return base_text(value.bits, base)
  end
  return nil
end


local function hexadecimal(value)
  local text = integer_text(value, 16)
  local bytes = type(value) == "string" and value or values.tag(value) == "bytes" and value.text
  if bytes then
    text = bytes:gsub(".", function(byte)
      return ("%02x"):format(byte:byte())
    end)
  end
  return text or refuse("hexadecimal", value)
end


local CLAUSE = {
  s = function(value)
    local write = PLAIN[values.tag(value)]
    return write and write(value) or refuse("string", value)
  end,
  d = function(value)
    local tag = values.tag(value)
    return (tag == "int" or tag == "uint") and PLAIN[tag](value) or refuse("decimal", value)
  end,
  f = function(value, precision)
    local number = number_of("fixed", value)
    local text = special(number)
    if text then
      return text
    end
    local whole, rest = ("%." .. precision .. "f"):format(number):match "^(-?%d+)(.*)$"
    whole = whole:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^(-?),", "%1")
    return whole .. rest
  end,
  e = function(value, precision)
    local number = number_of("scientific", value)
    local text = special(number)
    if text then
      return text
    end
    local digits, sign, exponent = ("%." .. precision .. "e"):format(number):match "^(.-)e([-+])(%d+)$"
    exponent = exponent:gsub("%d", function(digit)
      return SUPERSCRIPT[math.tointeger(tonumber(digit))]
    end)
    return digits .. "\u{202f}×\u{202f}10" .. (sign == "-" and "⁻" or "") .. exponent
  end,
  b = function(value)
    if type(value) == "boolean" then
      return value and "1" or "0"
    end
    return integer_text(value, 2) or refuse("binary", value)
  end,
  x = hexadecimal,
  X = function(value)
    return hexadecimal(value):upper()
  end,
  o = function(value)
    return integer_text(value, 8) or refuse("octal", value)
  end,
}


local function parse_failure(text)
  error({ "could not parse formatting clause: " .. text }, 0)
end


--- Reads a clause behind its "%".
--- @return string letter, integer|nil precision, integer stop the byte behind it; raises { message }
function M.read_clause(text, at)
  local precision
  if text:find("^%.", at) then
    local digits, stop = text:match("^(%d*)()", at + 1)
    if stop > #text then
      parse_failure "error while parsing precision: could not find end of precision specifier"
    elseif digits == "" then
      parse_failure('error while parsing precision: error while converting precision to integer: strconv.Atoi: '
        .. 'parsing "": invalid syntax')
    end
    precision, at = tonumber(digits), stop
  end
  local letter = text:match("^" .. utf8.charpattern, at)
  if not CLAUSE[letter] then
    parse_failure(('unrecognized formatting clause "%s"'):format(letter))
  elseif precision and precision > PRECISION_MAX then
    parse_failure(("a precision of %d is more than %d"):format(precision, PRECISION_MAX))
  end
  return letter, precision, at + #letter
end


local function format_all(text, args)
  local out, at, count = {}, 1, 0
  while true do
    local percent = text:find("%", at, true)
    out[#out + 1] = text:sub(at, (percent or 0) - 1)
    if not percent then
      return table.concat(out)
    elseif text:find("^%%", percent + 1) then
      out[#out + 1], at = "%", percent + 2
    else
      count = count + 1
      if count > #args then
        error({ ("index %d out of range"):format(count - 1) }, 0)
      elseif percent == #text then
        error({ "unexpected end of string" }, 0)
      end
      local letter, precision, stop = M.read_clause(text, percent + 1)
      out[#out + 1], at = CLAUSE[letter](args[count], precision or PRECISION), stop
    end
  end
end


--- @param text string
--- @param list table the values of its clauses
--- @return string|nil
--- @return string? message
function M.format(text, list)
  local ok, result = pcall(format_all, text, values.elements(list))
  if ok then
    return result
  elseif type(result) == "table" and type(result[1]) == "string" then
    return nil, result[1]
  end
  error(result, 0)
end


return M
