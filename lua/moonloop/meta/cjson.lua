---@meta cjson
-- Stubs of `require "cjson"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cjson' instead"

---@class cjson
local cjson = {}

--- JSON of a value; raises an error for values that JSON cannot hold. Keys of plain tables are sorted.
---@param value any
---@return string text
function cjson.encode(value) end

--- The value of a JSON text; raises an error for other texts. Integers stay exact, and `[]` and `{}` stay distinct.
---@param text string
---@return any value
function cjson.decode(text) end

--- The same as `moonloop.null`.
---@type moonloop.Null
cjson.null = nil

--- The same as `moonloop.array`.
---@generic T
---@param list? T[]
---@return T[] list
function cjson.array(list) end

return cjson
