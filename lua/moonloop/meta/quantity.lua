---@meta moonloop.quantity
-- Stubs of `require "moonloop.quantity"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.quantity' instead"

---@class moonloop.quantity
local quantity = {}

--- The quantity as an API server would store it: `0.5` is `500m`, `1.5Gi` is `1536Mi`. `nil, why` for a value that is
--- no quantity, and for 10^36 and more.
---@param value string|number
---@return string? text canonical
---@return string? why
function quantity.parse(value) end

--- The same in another form: `"binary"` (`1536Mi`), `"decimal"` (`1500M`) or `"exponent"` (`1500e6`).
---@param value string|number
---@param form? "binary"|"decimal"|"exponent"
---@return string? text
---@return string? why
function quantity.format(value, form) end

--- As a number: an integer when it is whole and fits, else the nearest float.
---@param value string|number
---@return number? number
---@return string? why
function quantity.number(value) end

--- -1, 0 or 1.
---@param a string|number
---@param b string|number
---@return integer? order
---@return string? why
function quantity.compare(a, b) end

--- The sum, exact, in the form of `a` (of `b` if `a` is 0).
---@param a string|number
---@param b string|number
---@return string? sum
---@return string? why
function quantity.add(a, b) end

--- The difference, likewise.
---@param a string|number
---@param b string|number
---@return string? difference
---@return string? why
function quantity.subtract(a, b) end

--- The product, in the form of `a`, rounded up to a multiple of 10^-9, as Kubernetes does.
---@param a string|number
---@param b string|number
---@return string? product
---@return string? why
function quantity.multiply(a, b) end

return quantity
