---@meta moonloop.time
-- Stubs of `require "moonloop.time"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.time' instead"

--- Whole numbers or strings of digits, as string.match gives them.
---@class moonloop.Date
---@field year integer|string
---@field month integer|string
---@field day integer|string
---@field hour? integer|string
---@field min? integer|string
---@field sec? integer|string

---@class moonloop.time
local time = {}

--- Seconds since 1970, or `nil, why`. Fields are whole numbers or strings of digits. They are checked, also the days
--- of the month; `hour`, `min` and `sec` are 0 when left out.
---@param date moonloop.Date
---@return integer? seconds
---@return string? why
function time.utc(date) end

--- Seconds of an RFC 3339 instant, or `nil, why`.
---@param text string
---@return number? seconds an integer, or a float when the text has a fraction
---@return string? why
function time.parse(text) end

--- RFC 3339 in UTC, whole seconds, as the fields of Kubernetes need it.
---@param seconds number since 1970, in the years 1 to 9999; a fraction is cut off
---@return string text
function time.format(seconds) end

--- Seconds of `"5m30s"` (`h`, `m`, `s`, `ms`), or `nil, why`.
---@param text string
---@return number? seconds an integer when it is whole
---@return string? why
function time.duration(text) end

--- The first instant after `after` that a cron expression names, in UTC: five fields with names, ranges, lists and
--- steps (`"*/15 9-17 * * mon-fri"`; 0 and 7 are Sunday), or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
--- `nil, why` for a text that is no expression, and for an expression that never comes.
---@param expression string "0 3 * * mon-fri"
---@param after number seconds since 1970
---@return integer? seconds
---@return string? why
function time.cron(expression, after) end

return time
