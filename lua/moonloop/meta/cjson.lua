---@meta cjson
-- What an editor (lua-language-server) knows of the host's `require "cjson"`. Never loaded.
error "moonloop/meta is for editors; require 'cjson' instead"

---@class cjson
local cjson = {}

--- JSON of a value; raises for what JSON cannot hold. Keys of plain tables are sorted.
---@param value any
---@return string
function cjson.encode(value) end

--- The value of a JSON text; raises when it is none. Integers stay integers.
---@param text string
---@return any
function cjson.decode(text) end

---@type moonloop.Null
cjson.null = nil

--- The same as moonloop.array.
---@generic T
---@param list? T[]
---@return T[]
function cjson.array(list) end

return cjson
