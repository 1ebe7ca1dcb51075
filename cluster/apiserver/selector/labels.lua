--- Label selectors: "app=web,tier in (a, b),!old".
---
--- Rules and wordings: apimachinery/pkg/labels/selector.go.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local names = require "cluster.names"

local M = {}

local OPERATORS = "in, notin, =, ==, !=, gt, lt"
local SYMBOLS = {
  ["!"] = true, ["="] = true, ["=="] = true, ["!="] = true, ["("] = true, [")"] = true, [","] = true,
  ["<"] = true, [">"] = true,
}
local END = "end"


-- Special characters are joined to the longest sign there is: "==" is one, "=!" two.
local function read_symbol(text, at)
  local best
  local stop = at
  while text:find("^[=!(),<>]", stop) do
    local sign = text:sub(at, stop)
    if SYMBOLS[sign] then
      best = sign
    elseif best then
      break
    end
    stop = stop + 1
  end
  if not best then
    return { kind = "error", text = ("error expected: keyword found '%s'"):format(text:sub(at, stop - 1)) }, stop
  end
  return { kind = best, text = best }, at + #best
end


local function tokens_of(text)
  local tokens, at = {}, 1
  while true do
    at = text:find("[^ \t\r\n]", at)
    if not at then
      tokens[#tokens + 1] = { kind = END, text = "" }
      return tokens
    end
    local word = text:match("^[^ \t\r\n=!(),<>]+", at)
    if word then
      local keyword = word == "in" or word == "notin"
      tokens[#tokens + 1] = { kind = keyword and word or "word", text = word }
      at = at + #word
    else
      tokens[#tokens + 1], at = read_symbol(text, at)
    end
  end
end


local Parser = {}
Parser.__index = Parser


-- Everywhere but between key and values "in" and "notin" are words like others.
function Parser:peek(operator)
  local token = self.tokens[self.at]
  if not operator and (token.kind == "in" or token.kind == "notin") then
    return "word", token.text
  end
  return token.kind, token.text
end


function Parser:next(operator)
  local kind, text = self:peek(operator)
  self.at = math.min(self.at + 1, #self.tokens)
  return kind, text
end


function Parser:fail(...)
  self.error = string.format(...)
  return nil
end


local function labels_message(path, value, messages)
  return ("%s: %s"):format(path, field.body(field.invalid("", value, table.concat(messages, "; "))))
end


function Parser:key()
  local kind, text = self:next()
  local negated = kind == "!"
  if negated then
    kind, text = self:next()
  end
  if kind ~= "word" then
    return self:fail("found '%s', expected: identifier", text)
  end
  local wrong = names.qualified(text)
  if wrong then
    return self:fail("%s", labels_message("<nil>", text, wrong))
  end
  return text, negated
end


function Parser:list()
  local values = {}
  while true do
    local kind, text = self:next()
    if kind == "word" then
      values[text] = true
      kind, text = self:peek()
      if kind == ")" then
        return values
      elseif kind ~= "," then
        return self:fail("found '%s', expected: ',' or ')'", text)
      end
    elseif kind == "," then
      if not next(values) then
        values[""] = true
      end
      kind = self:peek()
      if kind == ")" then
        values[""] = true
        return values
      elseif kind == "," then
        values[""] = true
      end
    else
      return self:fail("found '%s', expected: ',', or identifier", text)
    end
  end
end


function Parser:set()
  local kind, text = self:next()
  if kind ~= "(" then
    return self:fail("found '%s' expected: '('", text)
  end
  kind, text = self:peek()
  if kind == ")" then
    self:next()
    return { [""] = true }
  elseif kind ~= "word" and kind ~= "," then
    return self:fail("found '%s', expected: ',', ')' or identifier", text)
  end
  local values = self:list()
  if values then
    self:next()
  end
  return values
end


function Parser:single()
  local kind, text = self:peek()
  if kind == END or kind == "," then
    return { [""] = true }
  end
  self:next()
  if kind ~= "word" then
    return self:fail("found '%s', expected: identifier", text)
  end
  return { [text] = true }
end


local COMPARED = { [">"] = true, ["<"] = true }


function Parser:check_values(key, operator, values)
  local list, wrong = gofmt.sorted_keys(values), {}
  for i, value in ipairs(list) do
    if COMPARED[operator] and not (value:find("^[-+]?%d+$") and math.tointeger(tonumber(value))) then
      wrong[#wrong + 1] = labels_message(("values[%d]"):format(i - 1), value,
        { "for 'Gt', 'Lt' operators, the value must be an integer" })
    end
  end
  for i, value in ipairs(list) do
    local messages = names.label_value(value)
    if messages then
      wrong[#wrong + 1] = labels_message(("values[%d][%s]"):format(i - 1, key), value, messages)
    end
  end
  if #wrong > 0 then
    return self:fail("%s", #wrong == 1 and wrong[1] or "[" .. table.concat(wrong, ", ") .. "]")
  end
  return list
end


function Parser:requirement()
  local key, negated = self:key()
  if not key then
    return nil
  end
  local kind = self:peek()
  if kind == END or kind == "," then
    return { key = key, operator = negated and "!" or "exists" }
  end
  if negated then
    return { key = key, operator = "!" }
  end
  local text, values
  kind, text = self:next(true)
  if kind == "in" or kind == "notin" then
    values = self:set()
  elseif kind == "=" or kind == "==" or kind == "!=" or COMPARED[kind] then
    values = self:single()
  else
    return self:fail("found '%s', expected: %s", text, OPERATORS)
  end
  local list = values and self:check_values(key, kind, values)
  return list and { key = key, operator = kind, values = values, number = math.tointeger(tonumber(list[1])) }
end


function Parser:requirements()
  local list = {}
  while true do
    local kind, text = self:peek()
    if kind == END then
      return list
    elseif kind ~= "word" and kind ~= "!" then
      return self:fail("found '%s', expected: !, identifier, or 'end of string'", text)
    end
    list[#list + 1] = self:requirement()
    if self.error then
      return self:fail("unable to parse requirement: %s", self.error)
    end
    kind, text = self:next()
    if kind == END then
      return list
    elseif kind ~= "," then
      return self:fail("found '%s', expected: ',' or 'end of string'", text)
    end
    kind, text = self:peek()
    if kind ~= "word" and kind ~= "!" then
      return self:fail("found '%s', expected: identifier after ','", text)
    end
  end
end


local TESTS = {
  ["exists"] = function(value) return value ~= nil end,
  ["!"] = function(value) return value == nil end,
  ["in"] = function(value, want) return value ~= nil and want.values[value] == true end,
  ["notin"] = function(value, want) return value == nil or not want.values[value] end,
  [">"] = function(value, want)
    local number = math.tointeger(tonumber(value))
    return number ~= nil and number > want.number
  end,
  ["<"] = function(value, want)
    local number = math.tointeger(tonumber(value))
    return number ~= nil and number < want.number
  end,
}
TESTS["="], TESTS["=="], TESTS["!="] = TESTS["in"], TESTS["in"], TESTS["notin"]


--- Reads a label selector.
--- @return table|nil requirements { { key =, operator =, values = set, number = }, … }, or nil and why
function M.parse(text)
  local parser = setmetatable({ tokens = tokens_of(text), at = 1 }, Parser)
  local list = parser:requirements()
  if not list then
    return nil, parser.error
  end
  return list
end


--- Returns true if `labels` (name → value, or nil) meet what M.parse returned.
function M.match(requirements, labels)
  for _, want in ipairs(requirements) do
    if not TESTS[want.operator](labels and labels[want.key], want) then
      return false
    end
  end
  return true
end


return M
