--- The differences that docs/embedded-server.md lists, each with its reason: rows of tables whose first cell is
--- a scenario, the second a request and the third a field; `*` stands for anything.
local files = require "cluster.spec.conformance.lib.files"

local M = {}
M.__index = M

local PAGE = "docs/embedded-server.md"


-- A Lua pattern of a cell: text between backquotes, with * for anything and \| for a bar.
local function pattern_of(cell)
  local text = cell:match("^%s*`(.-)`%s*$")
  if not text then
    return nil
  end
  text = text:gsub("\1", "|")
  return "^" .. text:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*") .. "$"
end


local function row_of(line)
  local cells = {}
  for cell in line:gsub("\\|", "\1"):gmatch("|([^|]*)") do
    cells[#cells + 1] = cell
  end
  local row = { scenario = pattern_of(cells[1] or ""), request = pattern_of(cells[2] or ""),
    field = pattern_of(cells[3] or ""), line = line, seen = 0 }
  return row.scenario and row.request and row.field and row
end


--- Reads the page.
function M.read()
  local self = setmetatable({ rows = {} }, M)
  for line in (files.read(PAGE) or ""):gmatch("[^\n]+") do
    local row = line:match("^|") and row_of(line)
    self.rows[#self.rows + 1] = row or nil
  end
  return self
end


--- Is a difference one of those listed? Notes that it was seen.
function M:lists(scenario, difference)
  for _, row in ipairs(self.rows) do
    if scenario:match(row.scenario) and difference.entry.source:match(row.request)
      and difference.field:match(row.field) then
      row.seen = row.seen + 1
      return true
    end
  end
  return false
end


--- The rows that differences were found in.
---@return string[] lines of the page, each with a number before it
function M:needed()
  local found = {}
  for _, row in ipairs(self.rows) do
    found[#found + 1] = row.seen > 0 and ("%d × %s"):format(row.seen, row.line) or nil
  end
  return found
end


--- The rows about scenarios that were played which no difference needed.
---@param played string[] names of scenarios
---@return string[] lines of the page
function M:unneeded(played)
  local found = {}
  for _, row in ipairs(self.rows) do
    local applies = false
    for _, name in ipairs(played) do
      applies = applies or name:match(row.scenario) ~= nil
    end
    if applies and row.seen == 0 then
      found[#found + 1] = row.line
    end
  end
  return found
end


return M
