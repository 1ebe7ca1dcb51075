--- The errors of Go's decoder for a text that is not JSON.
---
--- For messages only: scans the text a second time after decoding has failed.
--- Rules: encoding/json/scanner.go.
local M = {}

local UNEXPECTED_END = "unexpected end of JSON input"


-- A character in Go's single quotes. Bytes beyond ASCII are taken for the code points of the same number.
local function char_text(char)
  local code = char:byte()
  if code >= 0x80 then
    local printable = code > 0xa0 and code ~= 0xad
    return "'" .. (printable and utf8.char(code) or ("\\u%04x"):format(code)) .. "'"
  end
  if char == "'" then
    return [['\'']]
  elseif char == '"' then
    return [['"']]
  elseif char:find("^%c") then
    return ({ ["\n"] = [['\n']], ["\t"] = [['\t']], ["\r"] = [['\r']] })[char] or ("'\\x%02x'"):format(char:byte())
  end
  return "'" .. char .. "'"
end


local Scanner = {}
Scanner.__index = Scanner


function Scanner:fail(context)
  local char = self.text:sub(self.at, self.at)
  if char == "" then
    error({ message = UNEXPECTED_END }, 0)
  end
  error({ message = ("invalid character %s %s"):format(char_text(char), context) }, 0)
end


function Scanner:skip()
  self.at = self.text:find("[^ \t\r\n]", self.at) or #self.text + 1
end


function Scanner:peek()
  return self.text:sub(self.at, self.at)
end


function Scanner:string()
  self.at = self.at + 1
  while true do
    self.at = self.text:find('[%c"\\]', self.at) or #self.text + 1
    local char = self:peek()
    if char == '"' then
      self.at = self.at + 1
      return
    elseif char == "\\" then
      self.at = self.at + 1
      if self:peek() == "u" then
        for _ = 1, 4 do
          self.at = self.at + 1
          if not self:peek():find("%x") then
            self:fail("in \\u hexadecimal character escape")
          end
        end
      elseif not self:peek():find('^[bfnrt\\/"]') then
        self:fail("in string escape code")
      end
      self.at = self.at + 1
    elseif char == "\127" then
      self.at = self.at + 1
    else
      self:fail("in string literal")
    end
  end
end


function Scanner:digits(context)
  if not self:peek():find("^%d") then
    self:fail(context)
  end
  self.at = self.text:find("%D", self.at) or #self.text + 1
end


function Scanner:number()
  if self:peek() == "-" then
    self.at = self.at + 1
    if not self:peek():find("^%d") then
      self:fail("in numeric literal")
    end
  end
  if self:peek() == "0" then
    self.at = self.at + 1
  else
    self:digits("in numeric literal")
  end
  if self:peek() == "." then
    self.at = self.at + 1
    self:digits("after decimal point in numeric literal")
  end
  if self:peek():find("^[eE]") then
    self.at = self.at + 1
    if self:peek():find("^[-+]") then
      self.at = self.at + 1
    end
    self:digits("in exponent of numeric literal")
  end
end


function Scanner:word(word)
  for i = 2, #word do
    self.at = self.at + 1
    if self:peek() ~= word:sub(i, i) then
      self:fail(("in literal %s (expecting '%s')"):format(word, word:sub(i, i)))
    end
  end
  self.at = self.at + 1
end


function Scanner:members(close, what, member)
  self.at = self.at + 1
  self:skip()
  if self:peek() == close then
    self.at = self.at + 1
    return
  end
  while true do
    member(self)
    self:skip()
    local char = self:peek()
    if char == close then
      self.at = self.at + 1
      return
    elseif char ~= "," then
      self:fail("after " .. what)
    end
    self.at = self.at + 1
    self:skip()
  end
end


local function pair(self)
  if self:peek() ~= '"' then
    self:fail("looking for beginning of object key string")
  end
  self:string()
  self:skip()
  if self:peek() ~= ":" then
    self:fail("after object key")
  end
  self.at = self.at + 1
  self:value()
end


local WORDS = { t = "true", f = "false", n = "null" }


function Scanner:value()
  self:skip()
  local char = self:peek()
  if char == "{" then
    self:members("}", "object key:value pair", pair)
  elseif char == "[" then
    self:members("]", "array element", self.value)
  elseif char == '"' then
    self:string()
  elseif char:find("^[-%d]") then
    self:number()
  elseif WORDS[char] then
    self:word(WORDS[char])
  else
    self:fail("looking for beginning of value")
  end
end


--- @param text string what could not be decoded
--- @return string message
function M.describe(text)
  local scanner = setmetatable({ text = text, at = 1 }, Scanner)
  local ok, why = pcall(function()
    scanner:value()
    scanner:skip()
    if scanner.at <= #text then
      scanner:fail("after top-level value")
    end
  end)
  return ok and "exceeded max depth" or type(why) == "table" and why.message or "exceeded max depth"
end


return M
