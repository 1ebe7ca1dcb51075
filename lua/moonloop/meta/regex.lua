---@meta moonloop.regex
-- Stubs of `require "moonloop.regex"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.regex' instead"

---@class moonloop.regex
local regex = {}

--- The groups of the first match, or all of it when the pattern has none; `nil` when nothing matches. A group that
--- took no part is `false`.
---@param text string
---@param pattern string at most 1024 bytes
---@return string|false? ... the groups, or all of the match when there are none
function regex.match(text, pattern) end

--- First and last place of the first match, and a table of its groups by number and by name: `groups[1]`, and
--- `groups.tag` for `(?P<tag>…)`.
---@param text string
---@param pattern string
---@param init? integer where the match may begin; below 0 from the end
---@return integer? from
---@return integer? to
---@return table<any, string|false> groups by number and by name
function regex.find(text, pattern, init) end

--- For a loop over all matches: gives what `match` returns. An empty match that touches the one before it does not
--- count.
---@param text string
---@param pattern string
---@return fun(): any next
function regex.gmatch(text, pattern) end

--- The text with each match replaced, and how many: by a template with `$1`, `${name}`, `$0` for all of it and `$$`
--- for a dollar; by the value in a table for the first group; or by what a function returns for the groups (`nil` or
--- `false` keeps the match).
---@param text string
---@param pattern string
---@param replacement string|table|function
---@param max? integer at most so many matches
---@return string text
---@return integer count
function regex.gsub(text, pattern, replacement, max) end

--- The pattern that matches this text and nothing else.
---@param text string
---@return string pattern
function regex.quote(text) end

return regex
