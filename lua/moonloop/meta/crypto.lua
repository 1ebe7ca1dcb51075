---@meta moonloop.crypto
-- Stubs of `require "moonloop.crypto"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.crypto' instead"

---@class moonloop.crypto
local crypto = {}

--- A password of 1 to 1024 random characters, all equally likely: letters and digits that do not look alike, or those
--- of `alphabet`.
---@param length integer 1 to 1024
---@param alphabet? string 2 to 256 different bytes
---@return string password
function crypto.password(length, alphabet) end

--- So many random bytes, 1 to 65536: as they are, or in the form `"hex"` or `"base64"`.
---@param bytes integer 1 to 65536
---@param form? "bytes"|"hex"|"base64"
---@return string random
function crypto.random(bytes, form) end

--- A random UUID (version 4).
---@return string uuid
function crypto.uuid() end

--- The SHA-256 digest in hexadecimal digits, or in the form `"base64"` or `"bytes"`.
---@param text string at most 3 MiB
---@param form? "bytes"|"hex"|"base64"
---@return string digest
function crypto.sha256(text, form) end

--- The HMAC with SHA-256 of the text; the form as with `sha256`.
---@param key string
---@param text string at most 3 MiB
---@param form? "bytes"|"hex"|"base64"
---@return string digest
function crypto.hmac_sha256(key, text, form) end

return crypto
