--- The scenarios there are, each as often as it is to be played.
local files = require "spec.conformance.lib.files"
local scenario = require "spec.conformance.lib.scenario"

local M = {}

local HERE = "spec/conformance"


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


-- A session is a case for each kubectl; any other scenario is one case.
local function add(cases, parsed)
  if not has_commands(parsed) then
    cases[#cases + 1] = { name = parsed.name, scenario = parsed }
    return
  end
  for _, kubectl in ipairs(kubectls()) do
    cases[#cases + 1] = {
      name = parsed.name .. "@" .. kubectl.version, scenario = parsed, options = { kubectl_folder = kubectl.folder },
    }
  end
end


local function wanted(name, filters)
  for _, filter in ipairs(filters) do
    if name:find(filter, 1, true) then
      return true
    end
  end
  return #filters == 0
end


--- Reads the scenarios whose names have one of the filters in them; all when there is no filter.
---@param filters string[]
---@return table[] cases { name =, scenario = see scenario.lua, options = of player.play, for sessions }
function M.load(filters)
  local cases = {}
  for _, folder in ipairs { "scenarios", "sessions" } do
    for _, path in ipairs(files.lines(("find %s/%s -name '*.txt' | LC_ALL=C sort"):format(HERE, folder))) do
      local name = path:match(folder .. "/(.*)%.txt$")
      name = folder == "sessions" and "sessions/" .. name or name
      if wanted(name, filters) then
        add(cases, scenario.parse(name, files.read(path)))
      end
    end
  end
  return cases
end


--- Where the answers to a case are written down.
function M.recording(case)
  return ("%s/recorded/%s.txt"):format(HERE, case.name)
end


return M
