--- Reads tokens one by one, and says what is wrong with them in the words of ANTLR, which cel-go's parser is made with.
---
--- A token that only stands before what may come is passed over; where an operand is missing, reading may go on without
--- it. Any other mistake ends the reading.
local M = {}

M.DEPTH_MAX = 250 -- of nested expressions

M.RELATIONS = {
  ["<"] = "_<_", ["<="] = "_<=_", [">="] = "_>=_", [">"] = "_>_", ["=="] = "_==_", ["!="] = "_!=_", ["in"] = "@in",
}
M.SUMS = { ["+"] = "_+_", ["-"] = "_-_" }
M.PRODUCTS = { ["*"] = "_*_", ["/"] = "_/_", ["%"] = "_%_" }

local LITERALS = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
M.EXPECTED = "{'[', '{', '(', '.', '-', '!', " .. LITERALS
M.EXPECTED_KEY = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', " .. LITERALS
M.EXPECTED_ELEMENT = "{'[', '{', '(', ']', '.', ',', '-', '!', '?', " .. LITERALS

--- kinds of tokens that may begin an operand
M.BEGINS = {}
for kind in ([=[[ { ( . - ! true false null NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER]=]):gmatch "%S+" do
  M.BEGINS[kind] = true
end

-- The operators that may follow an operand.
local INFIX = { ["&&"] = true, ["||"] = true, ["?"] = true }
for _, operators in ipairs { M.RELATIONS, M.SUMS, M.PRODUCTS } do
  for kind in pairs(operators) do
    INFIX[kind] = true
  end
end
local CLOSES = { [")"] = true, ["]"] = true, ["}"] = true, [":"] = true, [","] = true }

--- Raised when nothing more can be read.
M.ABORT = {}

local Reader = {}
Reader.__index = Reader
M.Reader = Reader


function Reader:report(at, text, ...)
  self.issues:add(at, text:format(...))
end


function Reader:abort(text, ...)
  self:report(self.token.at, text, ...)
  error(M.ABORT, 0)
end


function Reader:advance()
  local token = self.token
  self.index = self.index + 1
  self.token = self.tokens[self.index]
  return token
end


-- Takes a token of that kind when it comes next.
function Reader:accept(kind)
  return self.token.kind == kind and self:advance() or nil
end


-- The token that comes next cannot stand here. One that only stands before what may is passed over.
function Reader:refuse(expected, fits)
  local following = self.tokens[self.index + 1]
  if self.token.kind ~= "<EOF>" and following and fits(following.kind) then
    self:report(self.token.at, "Syntax error: extraneous input '%s' expecting %s", self.token.text, expected)
    self:advance()
    return
  end
  self:abort("Syntax error: mismatched input '%s' expecting %s", self.token.text, expected)
end


function Reader:expect(kind)
  if self.token.kind ~= kind then
    self:refuse(kind == "<EOF>" and kind or "'" .. kind .. "'", function(next_kind)
      return next_kind == kind
    end)
  end
  return self:advance()
end


-- Where an operand is missing: may reading go on as if it were there? It may before an operator, and before what closes
-- something, if the token behind is no operand.
function Reader:goes_on()
  local kind, following = self.token.kind, self.tokens[self.index + 1]
  local follows = INFIX[kind] or self.depth > 1 and CLOSES[kind]
  return follows and not M.BEGINS[following and following.kind]
end


function Reader:too_deep()
  self:report(nil, "expression recursion limit exceeded: %d", M.DEPTH_MAX)
  error(M.ABORT, 0)
end


return M
