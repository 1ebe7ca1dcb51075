-- Judges the outcomes of controller-runtime's tests: lua5.4 report.lua RUN SUITE… RUN is the folder of run.sh.
local cjson = require "cjson"


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
  local count = { passed = 0, failed = 0, skipped = 0 }
  local function note(outcome, why)
    count[outcome] = count[outcome] + 1
    if why then
      print("FAIL " .. why)
    end
  end
  local function judge_spec(suite, spec)
    if spec.State == "skipped" or spec.State == "pending" then
      note "skipped"
    elseif spec.State == "passed" then
      note "passed"
    else
      note("failed", ("%s: %s: %s"):format(name_of(suite, spec), spec.State, first_line((spec.Failure or {}).Message)))
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
