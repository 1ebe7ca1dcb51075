--- Reads Protocol Buffers in text format, as cel-spec's conformance data is written, without a schema.
---
--- A message is a table: name of a field → list of its values. A value is a text { text = "…" }, a word (number, true,
--- an enum's name) as it is written, or a message. "[type.googleapis.com/a.B]" is a field of that name.
local M = {}

local ESCAPES = { n = "\n", r = "\r", t = "\t", a = "\a", b = "\b", f = "\f", v = "\v" }

local Reader = {}
Reader.__index = Reader


function Reader:fail(what)
  local _, line = self.text:sub(1, self.at):gsub("\n", "")
  error(("line %d: %s"):format(line + 1, what), 0)
end


function Reader:skip()
  while true do
    local stop = self.text:match("^[%s,;]+()", self.at) or self.text:match("^#[^\n]*()", self.at)
    if not stop then
      return
    end
    self.at = stop
  end
end


function Reader:take(shape)
  self:skip()
  local part, stop = self.text:match("^(" .. shape .. ")()", self.at)
  self.at = stop or self.at
  return part
end


local function unescape(text)
  local out, at = {}, 1
  while at <= #text do
    local stop = text:find("\\", at, true) or #text + 1
    out[#out + 1] = text:sub(at, stop - 1)
    if stop > #text then
      break
    end
    local octal = text:match("^[0-7][0-7]?[0-7]?", stop + 1)
    local hexadecimal = text:match("^[xX](%x%x?)", stop + 1)
    local code = text:match("^u(%x%x%x%x)", stop + 1) or text:match("^U(%x%x%x%x%x%x%x%x)", stop + 1)
    if octal then
      out[#out + 1], at = string.char(tonumber(octal, 8)), stop + 1 + #octal
    elseif hexadecimal then
      out[#out + 1], at = string.char(tonumber(hexadecimal, 16)), stop + 2 + #hexadecimal
    elseif code then
      out[#out + 1], at = utf8.char(tonumber(code, 16)), stop + 2 + #code
    else
      local letter = text:sub(stop + 1, stop + 1)
      out[#out + 1], at = ESCAPES[letter] or letter, stop + 2
    end
  end
  return table.concat(out)
end


function Reader:quoted(quote)
  local at = self.at
  while true do
    local stop = self.text:find("[\\" .. quote .. "]", at)
    if not stop then
      self:fail "a text does not end"
    elseif self.text:sub(stop, stop) == quote then
      local content = self.text:sub(self.at, stop - 1)
      self.at = stop + 1
      return unescape(content)
    end
    at = stop + 2
  end
end


function Reader:value()
  local quote = self:take "[\"']"
  if quote then
    local parts = {}
    repeat
      parts[#parts + 1] = self:quoted(quote)
      quote = self:take "[\"']"
    until not quote
    return { text = table.concat(parts) }
  elseif self:take "{" then
    return self:message "}"
  elseif self:take "<" then
    return self:message ">"
  end
  return self:take "[-+%w_.]+" or self:fail "no value"
end


function Reader:add(message, name)
  local list = message[name] or {}
  message[name] = list
  if self:take "%[" then
    while not self:take "%]" do
      list[#list + 1] = self:value()
    end
  else
    list[#list + 1] = self:value()
  end
end


function Reader:message(close)
  local message = {}
  while true do
    self:skip()
    if close and self:take(close) or not close and self.at > #self.text then
      return message
    end
    local name = self:take "[%w_]+" or self:take "%[[%w_./]+%]" or self:fail "no field"
    self:take ":"
    self:add(message, name)
  end
end


--- @param text string
--- @return table message
function M.read(text)
  return setmetatable({ text = text, at = 1 }, Reader):message(nil)
end


return M
