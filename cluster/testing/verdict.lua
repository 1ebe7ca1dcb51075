--- Runs the tests of a script before it goes live, and says in a file what came of it, line by line, so that the file
--- tells how far they came when the process ends (cluster/host/tester.c reads it):
---
---   began LINE       the test at work, as "site_test.lua:12: site makes a pod"
---   failed MESSAGE   the first failure, with the number of others
---   passed
---   lost MESSAGE     there could be no tests
local host = require "cluster.host"

local M = {}

local MESSAGE_MAX = 1000 -- bytes; an Event has no more


-- Paths of the copies as their author knows them. Lua shortens long ones in its messages: luaO_chunkid.
local function shortener(folder, names)
  local forms = {}
  for _, name in ipairs(names) do
    local path = folder .. "/" .. name
    forms[#forms + 1] = { path, name }
    for keep = 40, 56 do
      if #path > keep then
        forms[#forms + 1] = { "..." .. path:sub(-keep), name }
      end
    end
  end
  return function(text)
    for _, form in ipairs(forms) do
      local from, to = text:find(form[1], 1, true)
      while from do
        text = text:sub(1, from - 1) .. form[2] .. text:sub(to + 1)
        from, to = text:find(form[1], from + #form[2], true)
      end
    end
    return text
  end
end


-- One line.
local function line_of(text)
  text = text:gsub("%s+", " "):sub(1, MESSAGE_MAX)
  return (host.escape(text))
end


local function full_name(element)
  return require("cluster.testing.observer").full_name(element) -- busted loads that
end


-- busted's handler of output: writes the report.
local function handler_of(report, shorten)
  local failures, first = 0, nil
  local function say(word, text)
    report:write(word, " ", line_of(shorten(text)), "\n")
    report:flush()
  end
  local function on_start(element)
    local trace = element.trace or {}
    say("began", ("%s:%s: %s"):format(trace.short_src or "?", trace.currentline or "?", full_name(element)))
    return nil, true -- others are told, too
  end
  -- The message has a place in front, where the failure was: in the test, or in what it calls.
  local function on_failure(element, _, message, trace)
    failures = failures + 1
    if first then
      return nil, true
    end
    local text = shorten(tostring(message))
    local place, rest = text:match "^([^\n:]+:%d+): (.*)$"
    local test = element.descriptor ~= "file" and full_name(element) or ""
    local at = trace and trace.currentline and trace.short_src and shorten(trace.short_src) or ""
    if not place then
      first = text
    elseif test == "" or test == element.descriptor then
      first = place .. ": " .. rest
    elseif not place:find "_test%.lua:%d+$" and at:find "_test%.lua$" then
      first = ("%s:%d: %s: %s: %s"):format(at, trace.currentline, test, place, rest)
    else
      first = place .. ": " .. test .. ": " .. rest
    end
    return nil, true
  end
  local handler = {}
  function handler.subscribe()
    local busted = require "busted"
    busted.subscribe({ "test", "start" }, on_start)
    busted.subscribe({ "failure" }, on_failure)
    busted.subscribe({ "error" }, on_failure)
  end
  function handler.conclude(code, why)
    if first then
      say("failed", first .. (failures > 1 and (" (and %d more fail)"):format(failures - 1) or ""))
    elseif why then
      say("failed", why)
    elseif code ~= 0 then
      say("failed", ("the tests ended with code %s"):format(code))
    else
      say("passed", "")
    end
  end
  return handler
end


--- @param options table { folder = of the files, tests = names of files in it, report = path of the file to write }
function M.run(options)
  local paths = require "cluster.testing.paths"
  local report = assert(io.open(options.report, "w"))
  if not pcall(require, "busted.runner") then
    report:write "lost busted is not there; install it: apt-get install lua-busted\n"
    report:close()
    return
  end
  local names, tests = {}, {}
  for _, path in ipairs(paths.list(options.folder)) do
    names[#names + 1] = path:match "[^/]+$"
  end
  for i, name in ipairs(options.tests) do
    tests[i] = options.folder .. "/" .. name
  end
  local handler = handler_of(report, shortener(options.folder, names))
  package.preload["busted.outputHandlers.verdict"] = function()
    return function()
      return handler
    end
  end
  local ok, code = pcall(require("cluster.testing.runner").run, {
    paths = tests, filters = {}, output = "verdict", shuffle = false,
  })
  handler.conclude(ok and code or 1, not ok and tostring(code) or nil)
  report:close()
end


return M
