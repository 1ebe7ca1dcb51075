--- Follows a run of busted: counts the tests of each file, sets the folder that `require` looks into, and has failures
--- of the library reported where the test called it. It notes the test that runs, for the process that waits
--- (cluster/cli/test.c), and lets those fail that ended an earlier process. busted loads it as its helper (runner.lua),
--- once its instance is there.
---
--- In a test, `require "util"` finds util.lua in the test's own folder, as it does in a script: behind the modules of
--- the host, before those of the machine.
local busted = require "busted"
local host = require "cluster.host"
local paths = require "cluster.testing.paths"

local M = {
  tests = {}, -- name of a file → how many of its tests began
}

local NAME_MAX = 400 -- bytes of a test's name, where one is noted

local progress = package.loaded["cluster.test_progress"] -- nil where nobody waits
local stopped = {} -- id of a test or file → why it ended its process
local seen = {} -- place and name of a test → how many of these began

local current -- the file whose tests run
local running -- the test that runs


local function is_module_name(name)
  return name:match "^[%w_-][%w_.-]*$" and not name:find("..", 1, true)
end


-- One of package.searchers: a loader and the file's name, or why there is none.
local function search_folder(name)
  if not current or not is_module_name(name) then
    return nil
  end
  local path = paths.folder_of(current) .. "/" .. name .. ".lua"
  local file = io.open(path)
  if not file then
    return ("no file '%s'"):format(path)
  end
  file:close()
  return assert(loadfile(path, "t")), path
end


-- Where busted finds a failure, when it is in this library: the line that called. The author of a test can change
-- nothing at a line of the library. Where a tail call has left no line: the test's first one.
local function place_at_caller(trace)
  if not trace.short_src:find "^cluster/testing/" then
    return trace
  end
  for place, line in trace.traceback:gmatch "\n\t([^\n]-):(%d+): in " do
    if not place:find "^cluster/testing/" then
      trace.short_src, trace.currentline = place, tonumber(line)
      return trace
    end
  end
  local first = running and running.trace or trace
  trace.short_src, trace.currentline = first.short_src, first.currentline
  return trace
end


--- The names of an element and of those around it, as busted prints them.
function M.full_name(element)
  local names = {}
  while element and (element.name or element.descriptor) and element.descriptor ~= "file" do
    table.insert(names, 1, element.name or element.descriptor)
    element = busted.parent(element)
  end
  return table.concat(names, " ")
end


-- Notes what runs from now on. @return string? why the same ended an earlier process
local function note(text, id)
  if progress then
    assert(progress.note { text = host.escape(text:sub(1, NAME_MAX)), id = host.escape(id:sub(1, NAME_MAX)) })
  end
  return stopped[id]
end


local function note_test(element)
  local trace = element.trace
  local text = ("%s:%d: %s"):format(trace.short_src, trace.currentline, M.full_name(element))
  seen[text] = (seen[text] or 0) + 1
  return note(text, ("%d %s"):format(seen[text], text))
end


local function note_outside(after)
  local where = after and ("%s, after or before %q"):format(current, after) or current .. ", before its first test"
  return note(("%s: outside of a test"):format(where), current)
end


-- Runs in place of a test or a file that ended an earlier process.
local function failing(why)
  return function()
    error(why, 0)
  end
end


local function place_failures_of(file)
  local trace_of = file.run.getTrace
  function file.run.getTrace(...)
    return place_at_caller(trace_of(...))
  end
end


busted.subscribe({ "file", "start" }, function(file)
  current = file.name
  running = nil
  place_failures_of(file)
  local why = note_outside()
  if why then
    getmetatable(file.run).__call = failing(("%s:1: %s"):format(file.name, why))
  end
  M.tests[current] = 0
end)

busted.subscribe({ "test", "start" }, function(element)
  running = element
  M.tests[current] = M.tests[current] + 1
  local why = note_test(element)
  if why then
    element.run = failing(why)
  end
end)

busted.subscribe({ "test", "end" }, function(element)
  note_outside(M.full_name(element))
end)

for _, entry in ipairs(require("cluster.testing.runner").stopped) do
  stopped[entry.at.id] = entry.why
end

table.insert(package.searchers, 3, search_folder)


--- How many tests of this file, or of the files below this folder, began.
function M.count(path)
  local count, folder = 0, path:gsub("/*$", "/")
  for file, tests in pairs(M.tests) do
    if file == path or file:sub(1, #folder) == folder then
      count = count + tests
    end
  end
  return count
end


return M
