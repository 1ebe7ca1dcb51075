---@meta moonloop.time
-- What an editor (lua-language-server) knows of `require "moonloop.time"`. Never loaded.
error "moonloop/meta is for editors; require 'moonloop.time' instead"

---@class moonloop.time
local time = {}

--- Whole numbers or strings of digits, as string.match gives them.
---@class moonloop.Date
---@field year integer|string
---@field month integer|string
---@field day integer|string
---@field hour? integer|string
---@field min? integer|string
---@field sec? integer|string

--- Seconds since 1970 of a date and time in UTC; every field is checked.
---@param date moonloop.Date
---@return integer? seconds
---@return string? why
function time.utc(date) end

--- Seconds since 1970 of an RFC 3339 instant; a float when it has a fraction.
---@param text string
---@return number? seconds
---@return string? why
function time.parse(text) end

--- RFC 3339 in UTC, whole seconds.
---@param seconds number
---@return string
function time.format(seconds) end

--- Seconds of a duration like "5m30s"; units h, m, s, ms.
---@param text string
---@return number? seconds
---@return string? why
function time.duration(text) end

return time
