--- Runs tests with the distribution's busted, in this process.
local host = require "cluster.host"

local M = {
  stopped = {}, -- the tests and files that ended an earlier process: { at = what observer.lua noted, why = text }
}

local OBSERVER = "cluster.testing.observer"


-- busted ends its process; here it ends this call.
local function run_to_exit(words)
  local ended = setmetatable({}, { __tostring = function() return "it calls os.exit" end })
  local exit = os.exit
  rawset(os, "exit", function(code)
    ended.code = code == true and 0 or code == false and 1 or code or 0
    error(ended, 0)
  end)
  rawset(_G, "arg", words)
  local ok, why = xpcall(function()
    require "busted.runner" { standalone = false }
  end, function(raised)
    return raised == ended and ended or debug.traceback(tostring(raised), 2)
  end)
  rawset(os, "exit", exit)
  if not ok and why ~= ended then
    error(why, 0)
  end
  return ended.code or 0
end


-- Has the folder, or one below it, a file of tests? Without one busted would end with a message of its own.
local function has_tests(folder)
  local paths = require "cluster.testing.paths"
  for _, path in ipairs(paths.list(folder)) do
    if path:find "_test%.lua$" or paths.is_folder(path) and has_tests(path) then
      return true
    end
  end
  return false
end


local function refuse(path)
  error(("%s: no test in it; tests are in files whose names end in _test.lua"):format(host.escape(path)), 0)
end


local function check_paths(options)
  local paths = require "cluster.testing.paths"
  for _, path in ipairs(options.paths) do
    if paths.is_folder(path) and not has_tests(path) then
      refuse(path)
    end
  end
end


-- A run with no tests must fail, because it proves nothing.
local function check_that_tests_ran(options)
  local observer = require(OBSERVER)
  local count = 0
  for _, path in ipairs(options.paths) do
    local tests = observer.count(path)
    if tests == 0 and #options.filters == 0 then
      refuse(path)
    end
    count = count + tests
  end
  if count == 0 then
    error("no test matches --filter " .. host.escape(table.concat(options.filters, " --filter ")), 0)
  end
end


--- @param options table { paths = files and folders, output = busted's handler, filters = Lua patterns of names,
---   shuffle = in random order?, seed = of that order, or nil, stopped = see M, or nil,
---   coverage = path of a file for lcov, or "", or nil }
--- @return integer busted's exit code: how many tests failed, 0 when none did. Raises when a path has no test, or no
---   test passes the filters
function M.run(options)
  if not pcall(require, "busted.runner") then
    error("busted is not there; install it: apt-get install lua-busted", 0)
  end
  check_paths(options)
  M.stopped = options.stopped or {}
  local words = {
    [0] = "moonloop test", "--pattern=_test%.lua$", "--helper=" .. OBSERVER, "--output=" .. options.output,
  }
  for _, filter in ipairs(options.filters) do
    words[#words + 1] = "--filter=" .. filter
  end
  words[#words + 1] = options.shuffle and "--shuffle" or nil
  words[#words + 1] = options.seed and "--seed=" .. options.seed
  table.move(options.paths, 1, #options.paths, #words + 1, words)
  if options.coverage then
    require("cluster.testing.coverage").is_on = true
  end
  local code = run_to_exit(words)
  if options.coverage then
    local out = options.output:find "Terminal$" and io.stdout or io.stderr -- other forms are for machines
    require("cluster.testing.coverage").report(options.coverage, out)
  end
  if code == 0 then
    check_that_tests_ran(options)
  end
  return code
end


return M
