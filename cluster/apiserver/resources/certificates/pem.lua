--- Texts in PEM, as Go's encoding/pem reads them.
local host = require "cluster.host"

local M = {}


-- Takes the headers off the lines.
local function headers_of(lines)
  local headers, count = {}, 0
  while count < #lines and lines[count + 1]:find(":", 1, true) do
    count = count + 1
    headers[count] = lines[count]
  end
  table.move(lines, count + 1, #lines + count, 1)
  return headers
end


local BEGIN <const>, END <const>, DASHES <const> = "-----BEGIN ", "-----END ", "-----"


-- Returns the block from `from` to its END line at `last`, or nil if it is none.
local function read(text, from, kind, last)
  if text:sub(last + #END, last + #END + #kind + #DASHES - 1) ~= kind .. DASHES then
    return nil
  end
  local lines = {}
  for line in text:sub(from, last - 1):gmatch "[^\r\n]+" do
    lines[#lines + 1] = line
  end
  local headers = headers_of(lines)
  local bytes = host.base64.decode(table.concat(lines))
  return bytes and { type = kind, headers = headers, bytes = bytes }
end


--- The first block of a text. Linear: what stands before an end is read once, whether it is a block or not.
--- @return table|nil block { type =, headers = list of lines, bytes = }
--- @return string rest what follows it
function M.decode(text)
  local from = text:find(BEGIN, 1, true)
  while from do
    local after = from + 1
    if from == 1 or text:sub(from - 1, from - 1) == "\n" then
      local line = text:match("^[^\n]*", from)
      after = from + #line
      local kind = line:sub(#BEGIN + 1):match "^(.*)%-%-%-%-%-[ \t\r]*$"
      local last = kind and text:find(END, after, true)
      local block = last and read(text, after + 1, kind, last)
      if block then
        return block, text:sub(last + #END + #kind + #DASHES)
      elseif kind and not last then
        break
      end
      after = last or after
    end
    from = text:find(BEGIN, after, true)
  end
  return nil, text
end


return M
