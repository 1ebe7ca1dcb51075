--- Where parser.lua and expressions.lua are in a text, and the variables that there are there.
local M = {}

--- The set of the words of a text.
function M.words(text)
  local set = {}
  for word in text:gmatch "%S+" do
    set[word] = true
  end
  return set
end


--- A text that is read: its tokens and where it is in them, the variables there, and what parser.lua returns.
local Parser = {}
Parser.__index = Parser


-- The text of the token there; nil for strings and at the end of the text.
function Parser:peek(ahead)
  local token = self.tokens[self.at + (ahead or 0)]
  return token and token.type ~= "string" and token.text or nil
end


function Parser:token()
  local token = self.tokens[self.at] or error "the text ends too early"
  self.at = self.at + 1
  return token
end


function Parser:accept(text)
  if self:peek() == text then
    self.at = self.at + 1
    return true
  end
  return false
end


function Parser:expect(text)
  if not self:accept(text) then
    error(("expected %s, found %s"):format(text, tostring(self:peek())))
  end
end


-- Declares a variable; `parts` are further fields of it.
function Parser:declare(name, parts)
  local variable = parts or {}
  variable.name, variable.mentions = name, 0
  self.scope[name] = variable
  return variable
end


function Parser:open_scope()
  self.scope = setmetatable({}, { __index = self.scope, outer = self.scope })
end


function Parser:close_scope()
  self.scope = getmetatable(self.scope).outer
end


M.Parser = Parser

return M
