--- Reads a Lua text that compiles, and finds the variable that each name means.
---
--- An expression is one of these; `line` is where it stands:
---     { tag = "constant", value = nil, true or false }  { tag = "number", value = }   { tag = "string", value = }
---     { tag = "varargs" }                               { tag = "function", … }: see below
---     { tag = "variable", variable = }                  { tag = "global", name = }
---     { tag = "field", of =, name =, line = }: x.name, x["name"]          { tag = "item", of =, key = }: x[key]
---     { tag = "call", callee =, arguments =, line = }
---     { tag = "method", of =, name =, arguments =, line = }: x:name(…)
---     { tag = "table", order = { name, … }, fields = { name → value }, lines = { name → line }, items = { value, … },
---       keys = { { key =, value = }, … }: with keys that are no literals }
---     { tag = "binary", operator =, left =, right =, line = }             { tag = "unary", operator =, operand = }
---     { tag = "single", of = }: (x), one value of a call
---
--- A function: { tag = "function", parameters = { variable, … }, returns = { { expression, … }, … }, line =,
--- uses = {}: for program.lua }.
---
--- A variable: { name =, value = the expression that it gets its value from, value_index = which of the values of that
--- expression, others = { assignment, … } by which it gets further values, mentions = how often it is read,
--- parameter_of = function, index = which parameter, loop = { iterator = expression, index = } }. `value` is the one of
--- its declaration, or of the only assignment to a variable that was declared without a value.
local lexer = require "analysis.lexer"

local M = {}

local function set_of(text)
  local set = {}
  for word in text:gmatch "%S+" do
    set[word] = true
  end
  return set
end


local BLOCK_ENDS = set_of "end else elseif until"
local UNARY = set_of "- not # ~"
-- Lua 5.4's precedences: how strongly an operator binds what is left and right of it.
local BINARY = {
  ["or"] = { 1, 1 }, ["and"] = { 2, 2 },
  ["<"] = { 3, 3 }, [">"] = { 3, 3 }, ["<="] = { 3, 3 }, [">="] = { 3, 3 }, ["~="] = { 3, 3 }, ["=="] = { 3, 3 },
  ["|"] = { 4, 4 }, ["~"] = { 5, 5 }, ["&"] = { 6, 6 }, ["<<"] = { 7, 7 }, [">>"] = { 7, 7 }, [".."] = { 9, 8 },
  ["+"] = { 10, 10 }, ["-"] = { 10, 10 }, ["*"] = { 11, 11 }, ["/"] = { 11, 11 }, ["//"] = { 11, 11 },
  ["%"] = { 11, 11 }, ["^"] = { 14, 13 },
}
local UNARY_BINDS = 12
local NIL, TRUE, FALSE = { tag = "constant" }, { tag = "constant", value = true }, { tag = "constant", value = false }
local CONSTANTS = { ["nil"] = NIL, ["true"] = TRUE, ["false"] = FALSE }

local Parser = {}
Parser.__index = Parser

local expression, expressions, function_body, suffixed

-- {{{ tokens and variables

-- The text of the token there; nil for strings and at the end of the text.
function Parser:peek()
  local reader = self.reader
  return reader.type ~= "string" and reader.text or nil
end


-- The text and the line of the token there, which has been read then.
function Parser:take()
  local reader = self.reader
  local text, line = reader.text, reader.line
  if not text then
    error "the text ends too early"
  end
  reader:next()
  return text, line
end


function Parser:accept(text)
  local reader = self.reader
  if reader.text == text and reader.type ~= "string" then
    reader:next()
    return true
  end
  return false
end


function Parser:expect(text)
  if not self:accept(text) then
    error(("expected %s, found %s"):format(text, tostring(self:peek())))
  end
end


function Parser:line()
  return self.reader.line
end


-- A literal string, which is the token there.
function Parser:string()
  local text, line = self:take()
  self.words[text] = true
  return { tag = "string", value = text, line = line }
end


-- Declares a variable; `parts` are further fields of it.
function Parser:declare(name, parts)
  local variable = parts or {}
  variable.name, variable.mentions = name, 0
  self.scope[name] = variable
  self.variables[#self.variables + 1] = variable
  return variable
end


function Parser:open_scope()
  self.scope = setmetatable({}, { __index = self.scope, outer = self.scope })
end


function Parser:close_scope()
  self.scope = getmetatable(self.scope).outer
end


-- }}}
-- {{{ expressions

local function table_constructor(self, line)
  local result = { tag = "table", order = {}, fields = {}, lines = {}, items = {}, keys = {}, line = line }
  self.tables[#self.tables + 1] = result
  while not self:accept "}" do
    local key
    local at_line = self:line()
    if self:accept "[" then
      key = expression(self)
      self:expect "]"
      self:expect "="
    elseif self.reader.type == "name" and self.reader:is_followed_by "=" then
      key = { tag = "string", value = self:take() }
      self:expect "="
    end
    local value = expression(self)
    if key and key.tag == "string" then
      result.fields[key.value], result.lines[key.value] = value, at_line
      result.order[#result.order + 1] = key.value
      self.words[key.value] = true
    elseif key then
      result.keys[#result.keys + 1] = { key = key, value = value }
    else
      result.items[#result.items + 1] = value
    end
    if not self:accept "," then
      self:accept ";"
    end
  end
  return result
end


-- Reads the arguments of a call; nil: there are none.
local function arguments(self)
  local line = self:line()
  if self.reader.type == "string" then
    return { self:string() }
  elseif self:accept "{" then
    return { table_constructor(self, line) }
  elseif self:accept "(" then
    local list = self:peek() ~= ")" and expressions(self) or {}
    self:expect ")"
    return list
  end
end


local function named(self)
  local name, line = self:take()
  local variable = self.scope[name]
  if not variable then
    return { tag = "global", name = name, line = line }
  end
  variable.mentions = variable.mentions + 1
  return { tag = "variable", variable = variable, line = line }
end


local function field_of(self, of, name, line)
  local field = { tag = "field", of = of, name = name, line = line }
  self.fields[#self.fields + 1] = field
  return field
end


local function indexed(self, of)
  local line = self:line()
  local key = expression(self)
  self:expect "]"
  if key.tag == "string" then
    return field_of(self, of, key.value, line)
  end
  return { tag = "item", of = of, key = key, line = line }
end


local function primary(self)
  local line = self:line()
  if not self:accept "(" then
    return named(self)
  end
  local result = expression(self)
  self:expect ")"
  local is_list = result.tag == "call" or result.tag == "method" or result.tag == "varargs"
  return is_list and { tag = "single", of = result, line = line } or result
end


function suffixed(self)
  local result = primary(self)
  while true do
    local line = self:line()
    if self:accept "." then
      result = field_of(self, result, self:take())
    elseif self:accept "[" then
      result = indexed(self, result)
    elseif self:accept ":" then
      local name, name_line = self:take()
      result = { tag = "method", of = result, name = name, arguments = arguments(self), line = name_line }
      self.methods[#self.methods + 1] = result
    else
      local list = arguments(self)
      if not list then
        return result
      end
      result = { tag = "call", callee = result, arguments = list, line = result.line or line }
      self.calls[#self.calls + 1] = result
    end
  end
end


local function operand(self)
  local reader, line = self.reader, self:line()
  if reader.type == "string" then
    return self:string()
  elseif reader.type == "number" then
    return { tag = "number", value = tonumber((self:take())), line = line }
  elseif CONSTANTS[reader.text] then
    return { tag = "constant", value = CONSTANTS[self:take()].value, line = line }
  elseif self:accept "..." then
    return { tag = "varargs", line = line }
  elseif self:accept "{" then
    return table_constructor(self, line)
  elseif self:accept "function" then
    return function_body(self, false, line)
  end
  return suffixed(self)
end


function expression(self, limit)
  local left
  local line = self:line()
  local operator = self:peek()
  if UNARY[operator or ""] then
    self:take()
    local inner = expression(self, UNARY_BINDS)
    if operator == "-" and inner.tag == "number" then
      left = { tag = "number", value = -inner.value, line = line }
    else
      left = { tag = "unary", operator = operator, operand = inner, line = line }
    end
  else
    left = operand(self)
  end
  while true do
    operator = self:peek()
    local binds = BINARY[operator or ""]
    if not binds or binds[1] <= (limit or 0) then
      return left
    end
    line = self:line()
    self:take()
    left = { tag = "binary", operator = operator, left = left, right = expression(self, binds[2]), line = line }
    self.binaries[#self.binaries + 1] = left
  end
end


function expressions(self)
  local list = {}
  repeat
    list[#list + 1] = expression(self)
  until not self:accept ","
  return list
end


-- From the parenthesis before the parameters to `end`.
function function_body(self, with_self, line)
  local result = { tag = "function", parameters = {}, returns = {}, uses = {}, line = line }
  self.functions[#self.functions + 1] = result
  local outer = self.current
  self.current = result
  self:expect "("
  self:open_scope()
  if with_self then
    self:declare("self", { value = { tag = "varargs" } })
  end
  while not self:accept ")" do
    local name = self:take()
    if name == "..." then
      result.has_varargs = true
    elseif name ~= "," then
      local index = #result.parameters + 1
      result.parameters[index] = self:declare(name, { parameter_of = result, index = index })
    end
  end
  self:block()
  self:close_scope()
  self:expect "end"
  self.current = outer
  return result
end


-- }}}
-- {{{ statements

local function scoped_block(self)
  self:open_scope()
  self:block()
  self:close_scope()
end


local function names(self)
  local list = {}
  repeat
    list[#list + 1] = self:take()
    if self:accept "<" then
      self:take() -- const, close
      self:expect ">"
    end
  until not self:accept ","
  return list
end


-- The expression that gives the value of that number, and which of its values it is; nil: none does, it is nil.
local function value_at(values, index)
  local last = values[#values]
  if index <= #values then
    return values[index], 1
  elseif last and (last.tag == "call" or last.tag == "method" or last.tag == "varargs") then
    return last, index - #values + 1
  end
  return NIL, 1
end


local function local_statement(self)
  if self:accept "function" then
    local name, line = self:take()
    local variable = self:declare(name)
    variable.value, variable.value_index = function_body(self, false, line), 1
    return
  end
  local list = names(self)
  local values = self:accept "=" and expressions(self) or {}
  for index, name in ipairs(list) do
    local value, value_index = value_at(values, index)
    self:declare(name, { value = value, value_index = value_index })
  end
end


local function for_statement(self)
  local list = names(self)
  local is_numeric = self:accept "="
  local _ = is_numeric or self:expect "in"
  local values = expressions(self)
  self:expect "do"
  self:open_scope()
  for index, name in ipairs(list) do
    local loop = not is_numeric and #values == 1 and { iterator = values[1], index = index } or nil
    self:declare(name, { loop = loop, is_number = is_numeric, value = { tag = "varargs" } })
  end
  self:block()
  self:close_scope()
  self:expect "end"
end


-- Notes an assignment. The first one to a variable that was declared without a value gives it its value.
local function assign(self, target, value, value_index, line)
  local note = { target = target, value = value, value_index = value_index, line = line }
  self.assignments[#self.assignments + 1] = note
  target.is_assigned = true
  local variable = target.variable
  if not variable then
    return
  end
  variable.mentions = variable.mentions - 1
  if variable.value == NIL then
    variable.value, variable.value_index = value, value_index
  else
    variable.others = variable.others or {}
    variable.others[#variable.others + 1] = note
  end
end


local function function_statement(self)
  local line = self:line()
  local target = named(self)
  local with_self = false
  while self:peek() ~= "(" do
    with_self = self:take() == ":"
    target = field_of(self, target, self:take())
  end
  assign(self, target, function_body(self, with_self, line), 1, line)
end


local function expression_statement(self)
  local targets = {}
  local line = self:line()
  repeat
    targets[#targets + 1] = suffixed(self)
  until not self:accept ","
  if self:accept "=" then
    local values = expressions(self)
    for index, target in ipairs(targets) do
      local value, value_index = value_at(values, index)
      assign(self, target, value, value_index, line)
    end
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


local function return_statement(self)
  local text = self:peek()
  local list = {}
  if self.reader.type and not (text and (BLOCK_ENDS[text] or text == ";")) then
    list = expressions(self)
  end
  self.current.returns[#self.current.returns + 1] = list
end


local STATEMENTS = {
  [";"] = function() end,
  ["break"] = function() end,
  ["::"] = function(self)
    self:take()
    self:expect "::"
  end,
  ["goto"] = function(self)
    self:take()
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
  ["return"] = return_statement,
}


function Parser:block()
  while self.reader.type and not BLOCK_ENDS[self:peek() or ""] do
    local statement = STATEMENTS[self:peek() or ""]
    if statement then
      self:take()
      statement(self)
    else
      expression_statement(self)
    end
  end
end


-- }}}

--- Parses a text. Raises an error for one that does not compile.
--- @param text string
--- @return table chunk: { main = function, and the lists fields, calls, methods, functions, tables, binaries: each
---   expression of that tag; assignments = list of { target, value, value_index, line }; words = set of the literal
---   strings and the names of keys of tables }
function M.parse(text)
  local main = { tag = "function", parameters = {}, returns = {}, uses = {}, has_varargs = true, line = 1 }
  local self = setmetatable({
    reader = lexer.reader(text), scope = {}, main = main, current = main,
    fields = {}, calls = {}, methods = {}, functions = {}, tables = {}, binaries = {}, assignments = {}, variables = {},
    words = {},
  }, Parser)
  self.reader:next()
  self:block()
  assert(not self.reader.type, "the text goes on after its end")
  self.reader, self.scope, self.current = nil, nil, nil
  return self
end


return M
