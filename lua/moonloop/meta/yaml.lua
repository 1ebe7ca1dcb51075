---@meta moonloop.yaml
-- Stubs of `require "moonloop.yaml"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.yaml' instead"

---@class moonloop.yaml
local yaml = {}

--- The YAML of a value, which kubectl reads as that value. Keys of plain tables are sorted. Raises the errors of
--- `cjson.encode`.
---@param value any
---@return string text
function yaml.encode(value) end

--- The value of a text with one document, read as kubectl reads it, or `nil, why` with the line. `moonloop.null` for
--- an empty one.
---@param text string at most 1 MiB
---@return any value
---@return string? why
function yaml.decode(text) end

return yaml
