--- Expressions of Lua, for parser.lua, which says what becomes of them. Here `block` of the parser reads the statements
--- in a function.
local cursor = require "cluster.analysis.fields.cursor"

local M = {}

local OTHER = { tag = "other" }
M.OTHER = OTHER

local words = cursor.words

local BINARY = words "+ - * / ^ % .. == ~= <= >= < > & | ~ and or"
local UNARY = words "- not # ~"
local CONSTANTS = words "nil true false"

local expression, expressions, function_body

local function table_constructor(self)
  local result = { tag = "table", fields = {}, is_empty = true }
  while not self:accept "}" do
    local key
    if self:accept "[" then
      key = expression(self)
      self:expect "]"
      self:expect "="
    elseif self.tokens[self.at].type == "name" and self:peek(1) == "=" then
      key = { tag = "string", text = self:token().text }
      self:expect "="
    end
    local value = expression(self)
    if key and key.tag == "string" then
      result.fields[key.text], self.words[key.text] = value, true
    end
    result.is_empty = false
    self.at = self.at + ((self:peek() == "," or self:peek() == ";") and 1 or 0)
  end
  return result
end


-- Reads the arguments of a call; nil: there are none.
local function arguments(self)
  local token = self.tokens[self.at]
  if token and token.type == "string" then
    self.at = self.at + 1
    self.words[token.text] = true
    return { { tag = "string", text = token.text } }
  elseif self:accept "{" then
    return { table_constructor(self) }
  elseif self:accept "(" then
    local list = self:peek() ~= ")" and expressions(self) or {}
    self:expect ")"
    return list
  end
end


local function add_call(self, callee, list)
  local call = { tag = "call", callee = callee, arguments = list }
  self.calls[#self.calls + 1] = call
  return call
end


local function add_read(self, of, name, line)
  local read = { tag = "field", of = of, name = name, line = line }
  self.reads[#self.reads + 1] = read
  return read
end


local function named(self, name)
  local variable = self.scope[name]
  if not variable then
    return { tag = "global", name = name }
  end
  variable.mentions = variable.mentions + 1
  return { tag = "variable", variable = variable }
end


-- x[…]: a literal name is a field.
local function indexed(self, of)
  local line = self.tokens[self.at].line
  local key = expression(self)
  self:expect "]"
  if key.tag == "string" and not key.text:find("\\", 1, true) then
    return add_read(self, of, key.text, line)
  end
  return { tag = "item", of = of }
end


local function suffixed(self)
  local result
  if self:accept "(" then
    result = expression(self)
    self:expect ")"
  else
    result = named(self, self:token().text)
  end
  while true do
    if self:accept "." then
      local name = self:token()
      result = add_read(self, result, name.text, name.line)
    elseif self:accept "[" then
      result = indexed(self, result)
    elseif self:accept ":" then
      self.at = self.at + 1
      arguments(self)
      result = OTHER
    else
      local list = arguments(self)
      if not list then
        return result
      end
      result = add_call(self, result, list)
    end
  end
end


local function operand(self)
  local token = self.tokens[self.at] or error "the text ends too early"
  if token.type == "string" then
    self.at = self.at + 1
    self.words[token.text] = true
    return { tag = "string", text = token.text }
  elseif self:accept "{" then
    return table_constructor(self)
  elseif self:accept "function" then
    return function_body(self)
  elseif token.text == "(" or token.type == "name" and not CONSTANTS[token.text] then
    return suffixed(self)
  end
  self.at = self.at + 1
  return OTHER
end


-- a // b, a << b and a >> b are two symbols each for the lexer.
local function skip_operators(self)
  local first, count = self:peek(), 0
  while BINARY[self:peek() or ""] or UNARY[self:peek() or ""] do
    self.at, count = self.at + 1, count + 1
  end
  return first, count
end


function expression(self)
  local _, unary = skip_operators(self)
  local result = operand(self)
  result = unary == 0 and result or OTHER
  while BINARY[self:peek() or ""] do
    local operator, count = skip_operators(self)
    local right = operand(self)
    local is_default = operator == "or" and count == 1 and right.tag == "table" and right.is_empty
    result = is_default and result or OTHER -- `x or {}` has the fields of x
  end
  return result
end


function expressions(self)
  local list = {}
  repeat
    list[#list + 1] = expression(self)
  until not self:accept ","
  return list
end


-- From the parenthesis before the parameters to `end`.
function function_body(self, with_self)
  local result = { tag = "function", parameters = {}, uses = {} }
  self.functions[#self.functions + 1] = result
  self:expect "("
  self:open_scope()
  if with_self then
    self:declare("self", {})
  end
  while not self:accept ")" do
    local name = self:token().text
    if name ~= "," and name ~= "..." then
      local index = #result.parameters + 1
      result.parameters[index] = self:declare(name, { parameter_of = result, index = index })
    end
  end
  self:block()
  self:close_scope()
  self:expect "end"
  return result
end


M.named, M.suffixed = named, suffixed
M.expression, M.expressions, M.function_body = expression, expressions, function_body

return M
