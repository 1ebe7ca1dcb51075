---@meta moonloop.labels
-- Stubs of `require "moonloop.labels"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.labels' instead"

---@class moonloop.LabelRequirement
---@field key string
---@field operator "In"|"NotIn"|"Exists"|"DoesNotExist"
---@field values? string[]

---@class moonloop.LabelSelector
---@field matchLabels? table<string, string>
---@field matchExpressions? moonloop.LabelRequirement[]

---@class moonloop.labels
local labels = {}

--- Does the selector select an object with these labels? It is a string as for `kubectl -l`, or a LabelSelector with
--- `matchLabels` and `matchExpressions`; one without requirements selects all. `nil, why` for a bad one.
---@param selector string|moonloop.LabelSelector
---@param labels? table<string, string>
---@return boolean? selects
---@return string? why
function labels.match(selector, labels) end

return labels
