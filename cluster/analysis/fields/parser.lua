--- Reads a Lua text that compiles: finds the variable that each name means, and the expressions that read a field.
---
--- An expression is one of these; any other, and every one whose value an operator makes, is OTHER:
---     { tag = "global", name = }            { tag = "string", text = }
---     { tag = "variable", variable = }      { tag = "function", parameters = { variable, … }, uses = {} }
---     { tag = "field", of =, name =, line = } { tag = "item", of = }: x[i]
---     { tag = "call", callee =, arguments = { … } }
---     { tag = "table", fields = { name → expression }, is_empty = }
--- A variable is { name =, value = what it got when it was declared, or nil, is_assigned = whether it gets another,
--- mentions = how often it is named, parameter_of = its function, index =, item_of = the list a loop goes through }.
local cursor = require "cluster.analysis.fields.cursor"
local expressions_of = require "cluster.analysis.fields.expressions"
local lexer = require "cluster.analysis.rbac.lexer"

local M = {}

local OTHER, Parser = expressions_of.OTHER, cursor.Parser
local expression, expressions = expressions_of.expression, expressions_of.expressions
local function_body = expressions_of.function_body
local BLOCK_ENDS = cursor.words "end else elseif until"

local function scoped_block(self)
  self:open_scope()
  self:block()
  self:close_scope()
end


local function names(self)
  local list = {}
  repeat
    list[#list + 1] = self:token().text
    if self:accept "<" then
      self.at = self.at + 2 -- const>, close>
    end
  until not self:accept ","
  return list
end


local function local_statement(self)
  if self:accept "function" then
    local variable = self:declare(self:token().text)
    variable.value = function_body(self)
    return
  end
  local list = names(self)
  local values = self:accept "=" and expressions(self) or {}
  for index, name in ipairs(list) do
    self:declare(name, { value = values[index] or OTHER })
  end
end


local function for_statement(self)
  local list = names(self)
  local _ = self:accept "=" or self:expect "in"
  local values = expressions(self)
  self:expect "do"
  self:open_scope()
  for index, name in ipairs(list) do
    self:declare(name, { item_of = index == 2 and #values == 1 and values[1] or nil, value = OTHER })
  end
  self:block()
  self:close_scope()
  self:expect "end"
end


-- Notes an assignment to a variable, or to a field, which then exists.
local function assign(self, target)
  if target.tag == "variable" then
    target.variable.is_assigned = true
  elseif target.tag == "field" then
    self.assigned[target.name] = true
  elseif target.tag == "item" then
    self.filled[#self.filled + 1] = target.of
  end
end


local function function_statement(self)
  local target = expressions_of.named(self, self:token().text)
  local with_self = false
  while self:peek() ~= "(" do
    with_self = self:token().text == ":"
    target = { tag = "field", of = target, name = self:token().text }
  end
  assign(self, target)
  function_body(self, with_self)
end


local function expression_statement(self)
  local targets = {}
  repeat
    targets[#targets + 1] = expressions_of.suffixed(self)
  until not self:accept ","
  if self:accept "=" then
    for _, target in ipairs(targets) do
      assign(self, target)
    end
    expressions(self)
  end
end


local function if_statement(self)
  repeat
    expression(self)
    self:expect "then"
    scoped_block(self)
  until not self:accept "elseif"
  if self:accept "else" then
    scoped_block(self)
  end
  self:expect "end"
end


local STATEMENTS = {
  [";"] = function() end,
  ["break"] = function() end,
  ["::"] = function(self)
    self.at = self.at + 2
  end,
  ["goto"] = function(self)
    self.at = self.at + 1
  end,
  ["do"] = function(self)
    scoped_block(self)
    self:expect "end"
  end,
  ["while"] = function(self)
    expression(self)
    self:expect "do"
    scoped_block(self)
    self:expect "end"
  end,
  ["repeat"] = function(self)
    self:open_scope()
    self:block()
    self:expect "until"
    expression(self)
    self:close_scope()
  end,
  ["if"] = if_statement,
  ["for"] = for_statement,
  ["function"] = function_statement,
  ["local"] = local_statement,
  ["return"] = function(self)
    local text = self:peek()
    if self.tokens[self.at] and not (text and (BLOCK_ENDS[text] or text == ";")) then
      expressions(self)
    end
  end,
}


function Parser:block()
  while self.tokens[self.at] and not BLOCK_ENDS[self:peek() or ""] do
    local statement = STATEMENTS[self:peek() or ""]
    if statement then
      self.at = self.at + 1
      statement(self)
    else
      expression_statement(self)
    end
  end
end


--- @return table { reads = every `field` expression that is read, or assigned to, calls = every call, functions,
---   assigned = set of the names of fields that are assigned to, filled = list of the tables assigned to by a key that
---   is not literal, words = set of all literal strings and keys of tables }
function M.parse(text)
  local self = setmetatable({
    tokens = lexer.tokens(text), at = 1, scope = {},
    reads = {}, calls = {}, functions = {}, assigned = {}, filled = {}, words = {},
  }, Parser)
  self:block()
  assert(not self.tokens[self.at], "the text goes on after its end")
  return self
end


return M
