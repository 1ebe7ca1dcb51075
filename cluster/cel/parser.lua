--- Reads an expression into a tree.
---
--- A node is { kind, at, … }; `at` is the byte of the text where mistakes about it are shown:
---   error                           what could not be read; a tree that is returned has none
---   const   value, type
---   ident   name                    ".a" begins with the dot
---   select  operand, field, test    test: has(a.b)
---   call    name, target, args      operators are calls of "_+_" and so on, as cel-go names them
---   list    elements, optional      optional: index → true, of [?a]
---   map     entries = { { key, value, optional, at } }
---   struct  name, entries = { { field, value, optional, at } }
---   fold, optmap                    see macros.lua
--- Rules: cel-go parser/parser.go, parser/gen/CEL.g4.
local Parser = require "cluster.cel.aggregates"
local issues_module = require "cluster.cel.issues"
local lexer = require "cluster.cel.lexer"
local literals = require "cluster.cel.literals"
local macros = require "cluster.cel.macros"
local reader = require "cluster.cel.reader"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local ABORT, BEGINS, EXPECTED, DEPTH_MAX = reader.ABORT, reader.BEGINS, reader.EXPECTED, reader.DEPTH_MAX
local SIZE_MAX = 100000 -- characters of an expression

local RESERVED = {}
for word in ([[as break const continue else false for function if import in let loop package namespace null return true
  var void while]]):gmatch "%a+" do
  RESERVED[word] = true
end


-- Nodes.

local function const(at, type, value)
  return { kind = "const", at = at, type = type, value = value }
end


-- A call, or what a macro of that name makes of it.
function Parser:call(at, name, args, target)
  local expand = macros.find(name, #args, target ~= nil) or self.dialect.bindings and macros.binding(name, args, target)
  if expand then
    local node, mistake = expand(at, args, target)
    if node then
      return node
    end
    self:report(mistake.at, "%s", mistake.message)
  end
  return { kind = "call", at = at, name = name, target = target, args = args }
end


-- Literals.

function Parser:number(token, negative, at)
  local kind = token.kind
  if kind == "NUM_UINT" then
    local bits = literals.uint(token.text)
    if not bits then
      self:report(at, "invalid uint literal")
    end
    return const(at, types.uint, values.uint(bits or 0))
  end
  local name = kind == "NUM_INT" and "int" or "double"
  local value = literals[name](token.text, negative)
  if not value then
    self:report(at, "invalid %s literal", name)
  end
  return const(at, types[name], value or 0)
end


function Parser:text(token)
  local text, message = literals.text(token.text)
  if not text then
    self:report(token.at, "%s", message)
  end
  if token.kind == "BYTES" then
    return const(token.at, types.bytes, values.bytes(text or ""))
  end
  return const(token.at, types.string, text or "")
end


local LITERAL = {
  ["true"] = function(_, token)
    return const(token.at, types.bool, true)
  end,
  ["false"] = function(_, token)
    return const(token.at, types.bool, false)
  end,
  ["null"] = function(_, token)
    return const(token.at, types.null, values.null)
  end,
  STRING = Parser.text,
  BYTES = Parser.text,
}
for _, kind in ipairs { "NUM_INT", "NUM_UINT", "NUM_FLOAT" } do
  LITERAL[kind] = function(self, token)
    return self:number(token, false, token.at)
  end
end


-- Primaries.

-- An identifier, or the call of a function.
function Parser:name(token, dotted)
  local name = (dotted and "." or "") .. token.text
  local at = dotted and dotted.at or token.at
  local reserved = RESERVED[token.text]
  if reserved then
    self:report(at, "reserved identifier: %s", token.text)
  end
  local open = self:accept "("
  if open then
    return self:call(open.at, name, self:arguments())
  elseif reserved then
    return { kind = "error", at = at }
  end
  return { kind = "ident", at = token.at, name = name }
end


-- "-5" is a literal, and may be followed by a selection; no other sign stands here.
function Parser:signed_number(sign)
  if sign.kind == "!" or self.token.kind ~= "NUM_INT" and self.token.kind ~= "NUM_FLOAT" then
    self:report(sign.at, "Syntax error: mismatched input '%s' expecting %s", sign.text, EXPECTED)
    error(ABORT, 0)
  end
  local token = self:advance()
  return self:number(token, true, sign.at)
end


function Parser:primary()
  local token = self.token
  if not BEGINS[token.kind] then
    if self:goes_on() then
      self:report(token.at, "Syntax error: mismatched input '%s' expecting %s", token.text, EXPECTED)
      return { kind = "error", at = token.at }
    end
    self:refuse(EXPECTED, function(kind)
      return BEGINS[kind]
    end)
    token = self.token
  end
  self:advance()
  if LITERAL[token.kind] then
    return LITERAL[token.kind](self, token)
  elseif token.kind == "(" then
    local node = self:expression()
    self:expect ")"
    return node
  elseif token.kind == "[" then
    return self:list(token)
  elseif token.kind == "{" then
    return self:map(token)
  elseif token.kind == "." then
    if self.token.kind ~= "IDENTIFIER" then
      self:abort("Syntax error: no viable alternative at input '.%s'",
        self.token.kind == "<EOF>" and "" or self.token.text)
    end
    return self:name(self:advance(), token)
  elseif token.kind == "IDENTIFIER" then
    return self:name(token)
  end
  return self:signed_number(token)
end


-- The parts that may follow a primary: ".a", ".?a", ".a(…)", "[i]", "[?i]".

-- "a.b.c" for a chain of names, as a type's name may be one; else nil.
local function qualified(node)
  if node.kind == "ident" then
    return node.name
  end
  local operand = node.kind == "select" and not node.test and qualified(node.operand)
  return operand and operand .. "." .. node.field
end


function Parser:selection(operand, dot)
  if self:accept "?" then
    local field, token = self:field_name()
    return { kind = "call", at = dot.at, name = "_?._", args = { operand, const(token.at, types.string, field) } }
  end
  local field, token = self:field_name "."
  local open = token.kind == "IDENTIFIER" and self:accept "("
  if open then
    return self:call(open.at, field, self:arguments(), operand)
  end
  return { kind = "select", at = dot.at, operand = operand, field = field }
end


function Parser:member()
  local node = self:primary()
  local count = 0
  while true do
    local token = self.token
    if self:accept "." then
      node = self:selection(node, token)
    elseif self:accept "[" then
      local name = self:accept "?" and "_[?_]" or "_[_]"
      local index = self:expression()
      self:expect "]"
      node = self:call(token.at, name, { node, index })
    elseif token.kind == "{" and qualified(node) then
      self:advance()
      node = self:struct(qualified(node), token.at)
    else
      return node
    end
    count = count + 1
    if count > DEPTH_MAX then
      self:too_deep()
    end
  end
end


-- Operators.

local SIGNS = { ["!"] = "!_", ["-"] = "-_" }


function Parser:unary()
  local sign = self.token
  if not SIGNS[sign.kind] then
    return self:member()
  end
  local following = self.tokens[self.index + 1]
  if sign.kind == "-" and (following.kind == "NUM_INT" or following.kind == "NUM_FLOAT") then
    return self:member()
  end
  local count = 0
  while self:accept(sign.kind) do
    count = count + 1
  end
  local operand = self:member()
  if count % 2 == 0 then
    return operand
  end
  return self:call(sign.at, SIGNS[sign.kind], { operand })
end


-- A chain of operators of one precedence, from the left.
local function chain(operators, operand)
  return function(self)
    local node, count = operand(self), 0
    while operators[self.token.kind] do
      local token = self:advance()
      node = self:call(token.at, operators[token.kind], { node, operand(self) })
      count = count + 1
      if count > DEPTH_MAX then
        self:too_deep()
      end
    end
    return node
  end
end


Parser.product = chain(reader.PRODUCTS, Parser.unary)
Parser.sum = chain(reader.SUMS, Parser.product)
Parser.relation = chain(reader.RELATIONS, Parser.sum)


-- a && b && c is one call with three arguments.
local function junction(operator, name, operand)
  return function(self)
    local first = operand(self)
    if self.token.kind ~= operator then
      return first
    end
    local node = { kind = "call", at = self.token.at, name = name, args = { first } }
    while self:accept(operator) do
      node.args[#node.args + 1] = operand(self)
    end
    return node
  end
end


Parser.conjunction = junction("&&", "_&&_", Parser.relation)
Parser.disjunction = junction("||", "_||_", Parser.conjunction)


function Parser:expression()
  self.depth = self.depth + 1
  if self.depth > DEPTH_MAX then
    self:too_deep()
  end
  local node = self:disjunction()
  local question = self:accept "?"
  if question then
    local yes = self:disjunction()
    self:expect ":"
    node = { kind = "call", at = question.at, name = "_?_:_", args = { node, yes, self:expression() } }
  end
  self.depth = self.depth - 1
  return node
end


local function parse_all(parser)
  local node = parser:expression()
  if parser.token.kind ~= "<EOF>" then
    parser:refuse("<EOF>", function(kind)
      return kind == "<EOF>"
    end)
  end
  return node
end


--- Reads an expression.
--- @param text string
--- @param dialect table { quoted_fields = true when a.`b-c` is read }
--- @return table|nil node
--- @return table|nil issues when there is no node
function M.parse(text, dialect)
  local issues = issues_module.new(text)
  local size = utf8.len(text, 1, -1, true) or #text
  if size > SIZE_MAX then
    issues:add(nil, ("expression code point size exceeds limit: size: %d, limit %d"):format(size, SIZE_MAX))
    return nil, issues
  end
  local tokens = lexer.tokens(text, issues)
  local parser = setmetatable({
    issues = issues, dialect = dialect, tokens = tokens, index = 1, token = tokens[1], depth = 0,
  }, Parser)
  local ok, result = pcall(parse_all, parser)
  if not ok and result ~= ABORT then
    error(result, 0)
  elseif issues.count > 0 then
    return nil, issues
  end
  return result
end


M.qualified = qualified


return M
