-- Passwords, random bytes and digests for scripts. Random bytes come from OpenSSL, and in tests from the world's seed.
local _, host = ...

local M = {}

local FORMS = { bytes = true, hex = true, base64 = true }
-- Letters and digits without those that look alike: 0 O o, 1 I l.
local READABLE = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789"


local function check_form(form, call)
  if form ~= nil and not (type(form) == "string" and FORMS[form]) then
    error(call .. ': form: expected "bytes", "hex" or "base64"', 3)
  end
end


local function check_text(text, name, call)
  if type(text) ~= "string" then
    error(("%s: %s: expected a string, got a %s"):format(call, name, type(text)), 3)
  end
  if #text > 3 * 1024 * 1024 then
    error(("%s: %s: larger than 3 MiB"):format(call, name), 3)
  end
end


local function in_form(bytes, form)
  return form == "hex" and host.hex(bytes) or form == "base64" and host.base64_encode(bytes) or bytes
end


-- Returns the host's random value, or raises an error of `call`.
local function drawn(call, value, why)
  return value or error(("%s: %s"):format(call, why), 3)
end


--- A password. Each byte of the alphabet is equally likely.
---@param length integer from 1 to 1024
---@param alphabet? string 2 to 256 different bytes; letters and digits that do not look alike when left out
---@return string password
function M.password(length, alphabet)
  local call = "crypto.password(length [, alphabet])"
  if math.type(length) ~= "integer" then
    error(call .. ": length: expected a whole number from 1 to 1024", 2)
  elseif alphabet ~= nil and type(alphabet) ~= "string" then
    error(call .. ": alphabet: expected a string, got a " .. type(alphabet), 2)
  end
  return drawn(call, host.password(length, alphabet or READABLE))
end


--- Random bytes.
---@param bytes integer how many, from 1 to 65536
---@param form? string "bytes" when left out, "hex" or "base64"
---@return string random
function M.random(bytes, form)
  local call = "crypto.random(bytes [, form])"
  check_form(form, call)
  if math.type(bytes) ~= "integer" then
    error(call .. ": expected a whole number from 1 to 65536", 2)
  end
  return in_form(drawn(call, host.random_bytes(bytes)), form)
end


--- A random UUID (version 4).
---@return string uuid
function M.uuid()
  return drawn("crypto.uuid()", host.uuid())
end


--- The SHA-256 digest.
---@param text string at most 3 MiB
---@param form? string "hex" when left out, "base64" or "bytes"
---@return string digest
function M.sha256(text, form)
  local call = "crypto.sha256(text [, form])"
  check_text(text, "text", call)
  check_form(form, call)
  return in_form(host.sha256(text), form or "hex")
end


--- The HMAC with SHA-256: proves to others who have the key that the text is yours.
---@param key string
---@param text string at most 3 MiB
---@param form? string "hex" when left out, "base64" or "bytes"
---@return string digest
function M.hmac_sha256(key, text, form)
  local call = "crypto.hmac_sha256(key, text [, form])"
  check_text(key, "key", call)
  check_text(text, "text", call)
  check_form(form, call)
  return in_form(host.hmac_sha256(key, text), form or "hex")
end


return M
