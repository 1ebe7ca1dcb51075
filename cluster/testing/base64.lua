--- The module that `require "moonloop.base64"` returns to a test: the names that a script has, by the host's codec.
local host = require "cluster.host"

local M = {}

M.encode = host.base64.encode


--- The bytes of a text; nil and why for what encode does not make.
function M.decode(text)
  local bytes = host.base64.decode(text)
  if not bytes or host.base64.encode(bytes) ~= text then
    return nil, "it is no base64"
  end
  return bytes
end


return M
