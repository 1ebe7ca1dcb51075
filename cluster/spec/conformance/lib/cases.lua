--- The scenarios there are, each as often as it is to be played.
local files = require "cluster.spec.conformance.lib.files"
local scenario = require "cluster.spec.conformance.lib.scenario"

local M = {}

local HERE = "cluster/spec/conformance"


-- The kubectls to play sessions with, "1.20=/folder 1.36=/folder": a list of { version, folder }.
local function kubectls()
  local list = {}
  for version, folder in (os.getenv "CONFORMANCE_KUBECTLS" or ""):gmatch("(%S-)=(%S+)") do
    list[#list + 1] = { version = version, folder = folder }
  end
  return list
end


local function has_commands(parsed)
  for _, step in ipairs(parsed.steps) do
    if step.does == "command" then
      return true
    end
  end
  return false
end


local function wanted(name, filters)
  for _, filter in ipairs(filters) do
    if name:find(filter, 1, true) then
      return true
    end
  end
  return #filters == 0
end


-- A session is a case for each kubectl; any other scenario is one case.
local function cases_of(parsed)
  if not has_commands(parsed) then
    return { { name = parsed.name, scenario = parsed } }
  end
  local list = {}
  for i, kubectl in ipairs(kubectls()) do
    list[i] = {
      name = parsed.name .. "@" .. kubectl.version, scenario = parsed, options = { kubectl_folder = kubectl.folder },
    }
  end
  return list
end


local function add_wanted(cases, parsed, filters)
  for _, case in ipairs(cases_of(parsed)) do
    cases[#cases + 1] = wanted(case.name, filters) and case or nil
  end
end


--- Reads the scenarios whose names have one of the filters in them; all when there is no filter. Sessions, which
--- take longest, come first.
---@param filters string[]
---@return table[] cases { name =, scenario = see scenario.lua, options = of player.play, for sessions }
function M.load(filters)
  local cases = {}
  for _, folder in ipairs { "sessions", "scenarios" } do
    for _, path in ipairs(files.lines(("find %s/%s -name '*.txt' | LC_ALL=C sort"):format(HERE, folder))) do
      local name = path:match(folder .. "/(.*)%.txt$")
      name = folder == "sessions" and "sessions/" .. name or name
      add_wanted(cases, scenario.parse(name, files.read(path)), filters)
    end
  end
  return cases
end


--- Where, in a folder, the answers to a case are written down.
function M.place(folder, case)
  return ("%s/%s.txt"):format(folder:gsub("/$", ""), case.name)
end


return M
