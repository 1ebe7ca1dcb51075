--- Follows a run of busted: counts the tests of each file, sets the folder that `require` looks into, and has failures
--- of the library reported where the test called it. Loaded by busted as its helper (runner.lua), once its instance is
--- there.
---
--- In a test, `require "util"` finds util.lua in the test's own folder, as it does in a script: behind the modules of
--- the host, before those of the machine.
local busted = require "busted"
local paths = require "cluster.testing.paths"

local M = {
  tests = {}, -- name of a file → how many of its tests began
}

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
  M.tests[current] = 0
end)

busted.subscribe({ "test", "start" }, function(element)
  running = element
  M.tests[current] = M.tests[current] + 1
end)

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
