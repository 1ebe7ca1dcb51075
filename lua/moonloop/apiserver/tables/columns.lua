--- Reads the columns of the built-in kinds from columns/*.lua.
---
--- There a kind has a text. A line that starts with a letter is a column: its name ("_" for a space), its type, then
--- "=format", "wide" (only shown on demand, priority 1) and "@name" or "@age", the descriptions that nearly all kinds
--- have. Lines with two spaces before them are the column's description; "\n" in it is a line's end,
--- "\s" a second space.
local M = {}

local COMMON = {
  ["@name"] = "Name must be unique within a namespace. Is required when creating resources, although some resources "
    .. "may allow a client to request the generation of an appropriate name automatically. Name is primarily intended "
    .. "for creation idempotence and configuration definition. Cannot be updated. More info: "
    .. "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
  ["@age"] = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not "
    .. "guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It "
    .. "is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More "
    .. "info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
}


local function read_head(line)
  local name, kind, rest = line:match("^(%S+) (%S+)(.*)$")
  local column = { name = name:gsub("_", " "), type = kind, format = "", description = "", priority = 0 }
  for word in rest:gmatch("%S+") do
    if word == "wide" then
      column.priority = 1
    elseif COMMON[word] then
      column.description = COMMON[word]
    else
      column.format = word:match("^=(.*)$")
    end
  end
  return column
end


--- The columns that a text describes, as a Table has them.
function M.read(text)
  local columns = {}
  for line in text:gmatch("[^\n]+") do
    local words = line:match("^  (.*)$")
    local column = columns[#columns]
    if not words then
      columns[#columns + 1] = read_head(line)
    elseif column.description == "" then
      column.description = words
    else
      column.description = column.description .. " " .. words
    end
  end
  for _, column in ipairs(columns) do
    column.description = column.description:gsub(" *\\n *", "\n"):gsub(" \\s ", "  ")
  end
  return columns
end


--- Of kinds that have no columns of their own.
M.default = {
  { name = "Name", type = "string", format = "name", description = COMMON["@name"], priority = 0 },
  { name = "Created At", type = "date", format = "", description = COMMON["@age"], priority = 0 },
}


return M
