-- Base64 for scripts (RFC 4648, the standard alphabet, with padding): what the `data` of a Secret holds.
local _, host = ...

local M = {}

--- The text of any bytes.
---@param bytes string
---@return string text
function M.encode(bytes)
  if type(bytes) ~= "string" then
    error("base64.encode(bytes): expected a string, got a " .. type(bytes), 2)
  end
  local text, why = host.base64_encode(bytes)
  if not text then
    error("base64.encode(bytes): " .. why, 2)
  end
  return text
end


--- The bytes of a text. Nothing is skipped: a line end in the text is an error.
---@param text string
---@return string? bytes
---@return string? why it is no base64
function M.decode(text)
  if type(text) ~= "string" then
    error("base64.decode(text): expected a string, got a " .. type(text), 2)
  end
  return host.base64_decode(text)
end


return M
