--- The module that `require "moonloop.crypto"` returns to a test: the digests of what a script has made. A test draws
--- nothing.
local host = require "cluster.host"

local M = {}


-- The bytes in a form: "hex" when left out, "base64" or "bytes".
local function in_form(bytes, form)
  if form == "bytes" then
    return bytes
  elseif form == "base64" then
    return host.base64.encode(bytes)
  end
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end


--- The SHA-256 digest, in the forms that a script has.
function M.sha256(text, form)
  return in_form(host.sha256(text):gsub("%x%x", function(digits)
    return string.char(tonumber(digits, 16))
  end), form)
end


--- The HMAC with SHA-256, likewise.
function M.hmac_sha256(key, text, form)
  return in_form(host.hmac_sha256(key, text), form)
end


return M
