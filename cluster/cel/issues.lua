--- Prints the errors in an expression as cel-go does: each mistake with its line and a mark below the place.
---
--- Rules: cel-go common/{error,errors,source}.go.
local M = {}

local REPORTED_MAX = 100
local SNIPPET_MAX = 16384

local Issues = {}
Issues.__index = Issues


--- An empty list of mistakes in a text.
function M.new(text)
  return setmetatable({ source = text, list = {}, count = 0 }, Issues)
end


-- Line, from 1, and column, from 0, in characters, of a byte of the text; and where its line begins.
local function locate(text, at)
  local line, start = 1, 1
  for stop in text:gmatch "()\n" do
    if stop >= at then
      break
    end
    line, start = line + 1, stop + 1
  end
  return line, utf8.len(text, start, at - 1, true) or at - start, start
end


--- Adds a mistake.
--- @param at integer|nil the byte where it is; nil when it has no place
--- @param message string
function Issues:add(at, message)
  self.count = self.count + 1
  if self.count > REPORTED_MAX then
    return
  end
  local line, column, start = -1, -1, nil
  if self.source == "" and at then
    line = 1
  elseif at then
    line, column, start = locate(self.source, at)
  end
  self.list[#self.list + 1] = { line = line, column = column, start = start, message = message, order = #self.list }
end


-- The line of the text, and dots up to the place; full-width ones below characters that take more than a byte.
local function snippet(source, issue)
  local line = source:match("^[^\n]*", issue.start):gsub("\t", " ")
  if #line > SNIPPET_MAX then
    return ""
  end
  local marks, at = {}, 1
  local function wide()
    local size = #(line:match("^" .. utf8.charpattern, at) or "")
    at = at + math.max(size, 1)
    return size > 1
  end
  for _ = 1, issue.column do
    if at > #line then
      break
    end
    marks[#marks + 1] = wide() and "\u{ff0e}" or "."
  end
  marks[#marks + 1] = wide() and "\u{ff3e}" or "^"
  return ("\n | %s\n | %s"):format(line, table.concat(marks))
end


local function show(source, issue)
  local text = ("ERROR: <input>:%d:%d: %s"):format(issue.line, issue.column + 1, issue.message)
  return issue.start and text .. snippet(source, issue) or text
end


--- All of them, in the order of their places.
function Issues:text()
  table.sort(self.list, function(a, b)
    if a.line ~= b.line then
      return a.line < b.line
    elseif a.column ~= b.column then
      return a.column < b.column
    end
    return a.order < b.order
  end)
  local texts = {}
  for i, issue in ipairs(self.list) do
    texts[i] = show(self.source, issue)
  end
  if self.count > REPORTED_MAX then
    texts[#texts + 1] = ("%d more errors were truncated"):format(self.count - REPORTED_MAX)
  end
  return table.concat(texts, "\n")
end


Issues.__tostring = Issues.text


return M
