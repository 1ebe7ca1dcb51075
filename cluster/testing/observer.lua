--- Follows a run of busted: counts the tests of each file, and sets the folder that `require` looks into. Loaded by
--- busted as its helper (runner.lua), once its instance is there.
---
--- In a test, `require "util"` finds util.lua in the test's own folder, as it does in a script: behind the modules of
--- the host, before those of the machine.
local busted = require "busted"
local paths = require "cluster.testing.paths"

local M = {
  tests = {}, -- name of a file → how many of its tests began
}

local current -- the file whose tests run


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


busted.subscribe({ "file", "start" }, function(file)
  current = file.name
  M.tests[current] = 0
end)

busted.subscribe({ "test", "start" }, function()
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
