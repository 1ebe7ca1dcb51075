--- The conformance runner. README.md tells how to use it.
local cases = require "cluster.spec.conformance.lib.cases"
local compare = require "cluster.spec.conformance.lib.compare"
local differences = require "cluster.spec.conformance.lib.differences"
local report = require "cluster.spec.conformance.lib.report"
local sides = require "cluster.spec.conformance.lib.sides"
local transcript = require "cluster.spec.conformance.lib.transcript"

local USAGE = [[
usage: main.lua list [NAME…]                    the scenarios there are
       main.lua play KUBECONFIG FOLDER/ CASE    writes down what a server answers to one of them
       main.lua record KUBECONFIG [NAME…]       the same for recorded/, each played twice
       main.lua compare LEFT RIGHT [NAME…]      two sides; each "recorded" or a FOLDER/ that was written, "embedded"
                                                (the server in this process) or a kubeconfig file
NAMEs are parts of scenarios' names: "watch/" or "patch/merge". CONFORMANCE_KUBECTLS="1.20=/folder 1.36=/folder"
names the folders of the kubectls that sessions are played with.]]


local function list(filters)
  for _, case in ipairs(cases.load(filters)) do
    print(case.name)
  end
  return true
end


-- Says what a scenario itself did not expect.
local function play(kubeconfig, folder, names)
  local side = sides.of(kubeconfig)
  local good = true
  for _, case in ipairs(cases.load(names)) do
    if case.name == names[1] then
      local answers, problems = side.play(case)
      transcript.write(cases.place(folder, case), case.scenario, answers)
      for _, problem in ipairs(problems) do
        print("FAIL " .. problem)
        good = false
      end
    end
  end
  side.close()
  return good
end


local function compare_sides(left_name, right_name, filters)
  local left, right = sides.of(left_name), sides.of(right_name)
  local page, sum = differences.read(), report.new(left_name:match("([^/]*)/?$"), right_name:match("([^/]*)/?$"))
  local played = {}
  for _, case in ipairs(cases.load(filters)) do
    if not (case.options and (left.in_process or right.in_process)) then
      local one, why = left.play(case)
      if one then
        local other, problems = right.play(case)
        sum:problems(problems or {})
        sum:scenario(case.name, one, compare.transcripts(one, other), function(difference)
          return page:lists(case.name, difference)
        end)
        played[#played + 1] = case.name
      else
        sum:problems { case.name .. " " .. why }
      end
    end
  end
  left.close()
  right.close()
  return sum:finish(page:needed(), #filters == 0 and page:unneeded(played) or {})
end


-- Plays each scenario twice: what the same server answers differently cannot be compared.
local function record(kubeconfig, filters)
  local side = sides.of(kubeconfig)
  local sum = report.new("first", "second")
  for _, case in ipairs(cases.load(filters)) do
    local first, problems = side.play(case)
    sum:problems(problems)
    local found = compare.transcripts(first, (side.play(case)))
    sum:scenario(case.name, first, found, function() return false end)
    transcript.write(cases.place("cluster/spec/conformance/recorded", case), case.scenario, first)
  end
  side.close()
  return sum:finish({}, {})
end


-- By its word: what runs it, with the command line, and how many words that has to have at least.
local COMMANDS = {
  list = { words = 0, run = list },
  play = { words = 3, run = function(words)
    return play(words[1], words[2], { words[3] })
  end },
  record = { words = 1, run = function(words)
    return record(table.remove(words, 1), words)
  end },
  compare = { words = 2, run = function(words)
    return compare_sides(table.remove(words, 1), table.remove(words, 1), words)
  end },
}

local command = COMMANDS[arg[1]]
if not command or #arg - 1 < command.words then
  io.stderr:write(USAGE, "\n")
  os.exit(2)
end
os.exit(command.run { table.unpack(arg, 2) } and 0 or 1, true)
