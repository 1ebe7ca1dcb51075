--- Reads what stands in brackets: arguments, lists, maps and messages.
local reader = require "cluster.cel.reader"

local Reader, BEGINS = reader.Reader, reader.BEGINS


-- "a, b" up to the closing token, which is taken.
function Reader:arguments()
  local args = {}
  if self:accept ")" then
    return args
  end
  repeat
    args[#args + 1] = self:expression()
  until not self:accept ","
  self:expect ")"
  return args
end


function Reader:list(token)
  local node = { kind = "list", at = token.at, elements = {}, optional = {} }
  while self.token.kind ~= "]" do
    if #node.elements == 0 and not BEGINS[self.token.kind] and self.token.kind ~= "?" and self.token.kind ~= "," then
      self:refuse(reader.EXPECTED_ELEMENT, function(kind)
        return BEGINS[kind] or kind == "]"
      end)
    end
    if #node.elements == 0 and self:accept "," then
      break
    end
    local index = #node.elements + 1
    node.optional[index] = self:accept "?" and true or nil
    node.elements[index] = self:expression()
    if not self:accept "," then
      break
    end
  end
  self:expect "]"
  return node
end


function Reader:map(token)
  local node = { kind = "map", at = token.at, entries = {} }
  while self.token.kind ~= "}" do
    if #node.entries == 0 and not BEGINS[self.token.kind] and self.token.kind ~= "?" and self.token.kind ~= "," then
      self:refuse(reader.EXPECTED_KEY, function(kind)
        return BEGINS[kind] or kind == "}"
      end)
    end
    if #node.entries == 0 and self:accept "," then
      break
    end
    local entry = { optional = self:accept "?" and true or nil }
    entry.key = self:expression()
    entry.at = self:expect(":").at
    entry.value = self:expression()
    node.entries[#node.entries + 1] = entry
    if not self:accept "," then
      break
    end
  end
  self:expect "}"
  return node
end


-- The name of a field, which may be in back quotes where the dialect has them.
function Reader:field_name(dot)
  local token = self.token
  if token.kind == "ESC_IDENTIFIER" then
    self:advance()
    if not self.dialect.quoted_fields then
      self:report(token.at, "unsupported syntax: '`'")
    end
    return token.text:sub(2, -2), token
  elseif token.kind ~= "IDENTIFIER" then
    if not dot then
      self:refuse("{IDENTIFIER, ESC_IDENTIFIER}", function(kind)
        return kind == "IDENTIFIER" or kind == "ESC_IDENTIFIER"
      end)
    elseif token.text:find "^[tfn]" and token.kind == token.text then
      self:abort("Syntax error: mismatched input '%s' expecting IDENTIFIER", token.text)
    else
      self:abort("Syntax error: no viable alternative at input '%s%s'", dot, token.kind == "<EOF>" and "" or token.text)
    end
  end
  return self:advance().text, token
end


-- Behind "a.b{".
function Reader:struct(name, at)
  local node = { kind = "struct", at = at, name = name, entries = {} }
  while self.token.kind ~= "}" do
    if #node.entries == 0 and self:accept "," then
      break
    end
    local entry = { optional = self:accept "?" and true or nil }
    if self.token.kind ~= "IDENTIFIER" and self.token.kind ~= "ESC_IDENTIFIER" then
      self:refuse("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}", function(kind)
        return kind == "IDENTIFIER" or kind == "ESC_IDENTIFIER"
      end)
    end
    entry.field = self:field_name()
    entry.at = self:expect(":").at
    entry.value = self:expression()
    node.entries[#node.entries + 1] = entry
    if not self:accept "," then
      break
    end
  end
  self:expect "}"
  return node
end


return Reader
