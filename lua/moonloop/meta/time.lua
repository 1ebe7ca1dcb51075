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

--- A date and time as the clocks of a zone show it. time.fields sets all fields; time.instant reads those of
--- moonloop.Date and `later`.
---@class moonloop.LocalDate
---@field year integer|string
---@field month integer|string
---@field day integer|string
---@field hour? integer|string
---@field min? integer|string
---@field sec? integer|string
---@field later? boolean the second of a time that comes twice
---@field weekday? integer 0 is Sunday
---@field offset? integer seconds east of UTC
---@field abbreviation? string "CEST"

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

--- RFC 3339, whole seconds: in UTC, as the fields of Kubernetes need it, or with the offset of a zone.
---@param seconds number since 1970, in the years 1 to 9999; a fraction is cut off
---@param zone? string "Europe/Berlin"; UTC when left out
---@return string text
function time.format(seconds, zone) end

--- Seconds of `"5m30s"` (`h`, `m`, `s`, `ms`), or `nil, why`.
---@param text string
---@return number? seconds an integer when it is whole
---@return string? why
function time.duration(text) end

--- The name of a time zone, which the functions beside this take: `time.zone "Europe/Berlin"`. `nil, why` when there
--- is none.
---@param name string of the IANA database
---@return string? zone
---@return string? why
function time.zone(name) end

--- The fields that the clocks of a zone show: `year`, `month`, `day`, `hour`, `min`, `sec`; `weekday`, where 0 is
--- Sunday; `offset` in seconds east of UTC, and its `abbreviation` (`"CEST"`); `later` for the second of a time that
--- comes twice.
---@param seconds number since 1970, in the years 1 to 9999; a fraction is cut off
---@param zone? string "Europe/Berlin"; UTC when left out
---@return moonloop.LocalDate date
function time.fields(seconds, zone) end

--- Seconds since 1970 at which the clocks of a zone show a date and time, or `nil, why`. Its fields are those of
--- `time.utc`. A time that comes twice or not at all has a second result.
---@param date moonloop.LocalDate
---@param zone string "Europe/Berlin"
---@return integer? seconds
---@return string? how "repeated" or "skipped"; why there are no seconds
function time.instant(date, zone) end

--- The first instant after `after` that a cron expression names, in UTC or in a zone: five fields with names, ranges,
--- lists and steps (`"*/15 9-17 * * mon-fri"`; 0 and 7 are Sunday), or `@hourly`, `@daily`, `@weekly`, `@monthly`,
--- `@yearly`. `nil, why` for a text that is no expression, and for an expression that never comes.
---@param expression string "0 3 * * mon-fri"
---@param after number seconds since 1970
---@param zone? string "Europe/Berlin"; UTC when left out
---@return integer? seconds
---@return string? why
function time.cron(expression, after, zone) end

--- The last instant before `before` that a cron expression names.
---@param expression string "0 3 * * mon-fri"
---@param before number seconds since 1970
---@param zone? string "Europe/Berlin"; UTC when left out
---@return integer? seconds
---@return string? why
function time.cron_before(expression, before, zone) end

return time
