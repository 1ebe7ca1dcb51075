--- Runs tests with the distribution's busted, in this process.
local M = {}


-- busted ends its process; here it ends this call.
local function run_to_exit(words)
  local ended = {}
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


--- @param given table { paths = files and folders, output = busted's handler, filters = Lua patterns of names,
---   shuffle = in random order?, seed = of that order, or nil }
--- @return integer busted's exit code: how many tests failed, 0 when none did
function M.run(given)
  if not pcall(require, "busted.runner") then
    error("busted is not there; install it: apt-get install lua-busted", 0)
  end
  local words = { [0] = "moonloop test", "--pattern=_test%.lua$", "--output=" .. given.output }
  for _, filter in ipairs(given.filters) do
    words[#words + 1] = "--filter=" .. filter
  end
  words[#words + 1] = given.shuffle and "--shuffle" or nil
  words[#words + 1] = given.seed and "--seed=" .. given.seed
  table.move(given.paths, 1, #given.paths, #words + 1, words)
  return run_to_exit(words)
end


return M
