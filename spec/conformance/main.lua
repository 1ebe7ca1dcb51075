--- The conformance runner. README.md tells how to use it.
local cases = require "spec.conformance.lib.cases"
local compare = require "spec.conformance.lib.compare"
local differences = require "spec.conformance.lib.differences"
local report = require "spec.conformance.lib.report"
local sides = require "spec.conformance.lib.sides"
local transcript = require "spec.conformance.lib.transcript"

local USAGE = [[
usage: main.lua record KUBECONFIG [NAME…]       write down what a real server answers
       main.lua replay [NAME…]                  the embedded server, in this process, against what was written down
       main.lua compare LEFT RIGHT [NAME…]      two servers; each a kubeconfig file, "recorded" or "embedded"
NAMEs are parts of scenarios' names: "watch/" or "patch/merge". CONFORMANCE_KUBECTLS="1.20=/folder 1.36=/folder"
names the folders of the kubectls that sessions are played with.]]


local function compare_sides(left_name, right_name, filters)
  local left, right = sides.of(left_name), sides.of(right_name)
  local page, sum = differences.read(), report.new(left_name:match("[^/]*$"), right_name:match("[^/]*$"))
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
  return sum:finish(page:unneeded(played))
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
    transcript.write(cases.recording(case), case.scenario, first)
  end
  side.close()
  return sum:finish {}
end


local COMMANDS = {
  record = function(arguments)
    return record(table.remove(arguments, 1), arguments)
  end,
  replay = function(arguments)
    return compare_sides("recorded", "embedded", arguments)
  end,
  compare = function(arguments)
    return compare_sides(table.remove(arguments, 1), table.remove(arguments, 1), arguments)
  end,
}

local command = COMMANDS[arg[1]]
if not command or (arg[1] == "record" and #arg < 2) or (arg[1] == "compare" and #arg < 3) then
  io.stderr:write(USAGE, "\n")
  os.exit(2)
end
os.exit(command { table.unpack(arg, 2) } and 0 or 1, true)
