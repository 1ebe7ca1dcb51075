-- Judges the outcomes of controller-runtime's tests: lua5.4 report.lua RUN SUITE… RUN is the folder of run.sh.
local cjson = require "cjson"

local FAILING = "cluster/spec/controller-runtime/failing.txt"


-- The lines of failing.txt: a set of "SUITE NAME".
local function expected()
  local names = {}
  for line in io.lines(FAILING) do
    if line ~= "" and line:sub(1, 1) ~= "#" then
      names[line] = true
    end
  end
  return names
end


-- The tests of a suite's report; nil when it wrote none.
local function tests(path)
  local file = io.open(path)
  local text = file and file:read "a"
  return text and cjson.decode(text)[1].SpecReports
end


local function name_of(suite, spec)
  local words = type(spec.ContainerHierarchyTexts) == "table" and table.concat(spec.ContainerHierarchyTexts, " ") or ""
  return ("%s %s %s"):format(suite, words, spec.LeafNodeText)
end


local function first_line(text)
  return ((text or ""):gsub("\n.*", ""):sub(1, 300))
end


local function judge(run, ...)
  local failing, count = expected(), { passed = 0, failed = 0, skipped = 0 }
  local function note(outcome, why)
    count[outcome] = count[outcome] + 1
    if why then
      print("FAIL " .. why)
    end
  end
  local function judge_spec(suite, spec)
    local name = name_of(suite, spec)
    if spec.State == "skipped" or spec.State == "pending" then
      note "skipped"
    elseif spec.State == "passed" then
      note(failing[name] and "failed" or "passed", failing[name] and name .. " passes: take it from " .. FAILING)
    else
      local why = ("%s: %s: %s"):format(name, spec.State, first_line((spec.Failure or {}).Message))
      note(failing[name] and "skipped" or "failed", not failing[name] and why)
    end
  end
  for _, suite in ipairs { ... } do
    local specs = tests(("%s/%s.json"):format(run, suite))
    if not specs then
      note("failed", suite .. " wrote no report: KEEP=1 keeps its log")
    end
    for _, spec in ipairs(specs or {}) do
      if spec.LeafNodeType == "It" or spec.State ~= "passed" then
        judge_spec(suite, spec)
      end
    end
  end
  print(("%d passed, %d failed, %d skipped"):format(count.passed, count.failed, count.skipped))
  return count.failed == 0
end


os.exit(judge(...))
