---@meta moonloop.base64
-- Stubs of `require "moonloop.base64"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.base64' instead"

---@class moonloop.base64
local base64 = {}

--- The base64 of any bytes, with padding, as the `data` of a Secret needs it.
---@param bytes string
---@return string text
function base64.encode(bytes) end

--- The bytes, or `nil, why`. Strict: a line end, a missing `=` or a bit left over is an error.
---@param text string
---@return string? bytes
---@return string? why
function base64.decode(text) end

return base64
