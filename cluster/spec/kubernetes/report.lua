-- Plans which of Kubernetes' tests run, and judges their outcomes. RUN is the folder of run.sh.
--
--   lua5.4 report.lua plan RUN SERVERS [fast|WORD…]   reads all.json, writes planned and a focus for each server
--   lua5.4 report.lua judge RUN                       reads each server's report; exit code 1 where something is wrong
local cjson = require "cjson"

local DOC = "docs/embedded-server.md"
local SLOW = "cluster/spec/kubernetes/slow.txt"


local function read(path)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text
end


local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end


local function exists(path)
  local file = io.open(path)
  return file and file:close()
end


-- The tests of a report, by name.
local function tests(path)
  local found = {}
  for _, spec in ipairs(cjson.decode(read(path))[1].SpecReports) do
    if spec.LeafNodeType == "It" and spec.State ~= "skipped" then
      local words = type(spec.ContainerHierarchyTexts) == "table" and spec.ContainerHierarchyTexts or {}
      found[table.concat(words, " ") .. " " .. spec.LeafNodeText] = spec
    end
  end
  return found
end


-- The table of docs/embedded-server.md. @return table of { part = of the name, outcome = "fails" | "left out" }
local function listed()
  local rows = {}
  for part, outcome in read(DOC):gmatch "\n| `(%[sig%-[^`]*)` | (%l[%l ]*) | " do
    rows[#rows + 1] = { part = part, outcome = outcome }
  end
  assert(#rows > 0, DOC .. " has no table of Kubernetes' tests")
  return rows
end


local function row_of(rows, name)
  for _, row in ipairs(rows) do
    if name:find(row.part, 1, true) then
      return row
    end
  end
end


local function contains_any(name, parts)
  for _, part in ipairs(parts) do
    if name:find(part, 1, true) then
      return true
    end
  end
  return #parts == 0
end


local function slow()
  local parts = {}
  for line in io.lines(SLOW) do
    parts[#parts + 1] = line:match "^%[.*"
  end
  return parts
end


local function plan(run, servers, ...)
  local words, rows, late = { ... }, listed(), {}
  if words[1] == "fast" then
    words, late = {}, slow()
  end
  local planned, skipped = {}, 0
  for name in pairs(tests(run .. "/all.json")) do
    local row = row_of(rows, name)
    if not contains_any(name, words) then
      goto continue
    elseif row and row.outcome == "left out" or #late > 0 and contains_any(name, late) then
      skipped = skipped + 1
    else
      planned[#planned + 1] = name
    end
    ::continue::
  end
  table.sort(planned)
  local focuses = {}
  for i, name in ipairs(planned) do
    local at = (i - 1) % math.tointeger(servers) + 1
    focuses[at] = (focuses[at] and focuses[at] .. "|" or "") .. name:gsub("%p", "\\%0")
  end
  for i, focus in pairs(focuses) do
    write(("%s/%d.focus"):format(run, i), focus)
  end
  write(run .. "/planned", table.concat(planned, "\n") .. "\n")
  write(run .. "/skipped", tostring(skipped))
end


local function first_lines(text)
  return (text or ""):gsub("\n.*", ""):sub(1, 300)
end


-- Returns the fault of a test's outcome, or nil if it is as expected.
local function complaint(spec, row)
  if not spec then
    return "did not run"
  elseif spec.State ~= "passed" and not row then
    return ("%s after %.0f s: %s"):format(spec.State, spec.RunTime / 1e9, first_lines((spec.Failure or {}).Message))
  elseif spec.State == "passed" and row then
    return "passes, and " .. DOC .. " says that it fails: take it from the table"
  end
end


local function judge(run)
  local rows, done, number = listed(), {}, 1
  while exists(("%s/%d.focus"):format(run, number)) do
    local path = ("%s/%d.json"):format(run, number)
    for name, spec in pairs(exists(path) and tests(path) or {}) do
      done[name] = spec
    end
    number = number + 1
  end
  local passed, failed, expected = 0, 0, 0
  for name in io.lines(run .. "/planned") do
    local row = row_of(rows, name)
    local why = complaint(done[name], row)
    if why then
      failed = failed + 1
      print(("FAIL %s: %s"):format(name, why))
    elseif row then
      expected = expected + 1
    else
      passed = passed + 1
    end
    if os.getenv "TIMES" and done[name] then
      print(("%6.1f s  %s"):format(done[name].RunTime / 1e9, name))
    end
  end
  print(("%d of Kubernetes' tests pass; %d fail as %s says"):format(passed, expected, DOC))
  print(("%d passed, %d failed, %d skipped"):format(passed, failed, expected + math.tointeger(read(run .. "/skipped"))))
  return failed == 0
end


local verbs = { plan = plan, judge = judge }
os.exit(verbs[arg[1]](table.unpack(arg, 2)) ~= false)
