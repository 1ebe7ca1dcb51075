--- The columns of the built-in kinds.
---
--- kinds/resources.lua has a line of words for each kind. A word is a column: its name ("_" for a space); behind a
--- colon its type, if that is not string; behind a slash its format, "-" for none (the default format of a column
--- called Name is name); in brackets when it is only shown on demand. No column has a description.
local M = {}


local function column(name, kind, format, priority)
  return { name = name, type = kind, format = format, description = "", priority = priority }
end


--- The columns that a line of words stands for, as a Table has them.
--- @param words string
function M.read(words)
  local list = {}
  for word in words:gmatch("%S+") do
    local wide = word:match("^%((.*)%)$")
    local name, kind, format = (wide or word):match("^([^:]+):?([^/]*)/?(.*)$")
    if format == "" and name == "Name" then
      format = "name"
    elseif format == "-" then
      format = ""
    end
    list[#list + 1] = column(name:gsub("_", " "), kind ~= "" and kind or "string", format, wide and 1 or 0)
  end
  return list
end


--- Of kinds that have no columns of their own.
M.default = { column("Name", "string", "name", 0), column("Created At", "date", "", 0) }


return M
