--- The columns of the built-in kinds.
---
--- kinds.lua has a line of words for each kind. A word is a column: its name ("_" for a space) and, behind a colon,
--- its type, where that is not string; in brackets when it is only shown on demand. None has a description.
local kinds = require "cluster.apiserver.tables.kinds"

local M = {}


local function column(name, kind, priority)
  return { name = name, type = kind, format = name == "Name" and "name" or "", description = "", priority = priority }
end


--- The columns that a line of words stands for, as a Table has them.
--- @param words string
function M.read(words)
  local list = {}
  for word in words:gmatch("%S+") do
    local wide = word:match("^%((.*)%)$")
    local name, kind = (wide or word):match("^([^:]+):?(.*)$")
    list[#list + 1] = column(name:gsub("_", " "), kind ~= "" and kind or "string", wide and 1 or 0)
  end
  return list
end


--- The columns of a kind, or nil when it has none of its own.
function M.of(group, kind)
  local words = kinds[group] and kinds[group][kind]
  return words and M.read(words)
end


--- Of kinds that have no columns of their own.
M.default = { column("Name", "string", 0), column("Created At", "date", 0) }


return M
