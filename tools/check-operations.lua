--- Checks that docs/operations.md shows the alerts of deploy/monitoring (--write puts them there), and that each of
--- them has a test and metrics that docs/operations.md names. Checks that docs/operations.md names each metric of the
--- host, each key of a log line, and each line that the host logs above debug, in words that a search finds. Lines of
--- `moonloop dev` and `moonloop test` alone are left out. Checks that no controller can have the name of a logger of
--- the host: host/script/declare.c lists them. Prints each missing name once, and exits with 1 when there is one.
local SAYS = {
  "ml_info%s*(%b())", "ml_warn%s*(%b())", "ml_error%s*(%b())", "ml_log%s*(%b())", "log_failure%s*(%b())",
}
local METRICS = { "ml_metrics_%l+%s*(%b())", "counter%s*(%b())", "gauge%s*(%b())", "histogram%s*(%b())" }
local LOGGERS = {
  'ml_info%s*%([^,"]+,%s*"([^"]*)"', 'ml_warn%s*%([^,"]+,%s*"([^"]*)"', 'ml_error%s*%([^,"]+,%s*"([^"]*)"',
  'ml_debug%s*%([^,"]+,%s*"([^"]*)"', 'ml_log%s*%([^,"]+,[^,"]+,%s*"([^"]*)"',
  'ml_log_write%s*%([^,"]+,[^,"]+,%s*"([^"]*)"', '%.logger = "([^"]*)"',
  'struct log_head head = {[^,]+, "%l+", "([^"]*)"',
  [[\"logger\":\"(%l+)\"]],
}
local DECLARE = "host/script/declare.c"
local NOT_RUN = { ["cluster/host/apiserver.c"] = true }

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("a")
  file:close()
  return text
end


local operations = read("docs/operations.md")
local missing = {} -- the lines that are printed: several patterns may find one call


local function report(line)
  if not missing[line] then
    io.stderr:write(line, "\n")
  end
  missing[line] = true
end


local function expect(file, what, text)
  if not operations:find("`" .. text, 1, true) then
    report(("%s: %s: not in docs/operations.md: `%s`"):format(file, what, text))
  end
end


-- The chapter on log lines names all keys of log fields, so that no two keys have the same meaning.
local KEYS = { "ML_S%s*(%b())", "ML_STR_FIELD%s*(%b())", "ML_I%s*(%b())", "ML_F%s*(%b())", "ML_RAW%s*(%b())",
               "ML_LINES%s*(%b())" }
local keys = { [""] = true }
for key in operations:match("\n%*%*Keys%.%*%*(.-)\n\n"):gmatch "`(%a[%w_]*)`" do
  keys[key] = true
end


local function check_keys(file, text)
  for _, pattern in ipairs(KEYS) do
    for field in text:gmatch(pattern) do
      for key in field:match("^%(([^,]*)"):gmatch '"([^"]*)"' do
        if not keys[key] then
          report(("%s: log key '%s': not among the keys of docs/operations.md"):format(file, key))
        end
      end
    end
  end
end


-- String literals of a call, with adjacent ones joined.
local function literals(call)
  call = call:gsub('"%s*\n%s*"', "")
  return call:gmatch('"([^"]*)"')
end


-- A message is a literal of several words or the third argument; labels and field names are single words.
local function check_lines(file, text)
  for _, pattern in ipairs(SAYS) do
    for call in text:gmatch(pattern) do
      local third = call:match('^%([^,]+,%s*[^,]+,%s*"([^"]*)"')
      local quiet = call:find("ML_LOG_DEBUG", 1, true)
      for literal in literals(call) do
        if not quiet and (literal == third or literal:find(" ", 1, true)) then
          expect(file, "log line", literal)
        end
      end
    end
  end
end


local function check_metrics(file, text)
  for _, pattern in ipairs(METRICS) do
    for call in text:gmatch(pattern) do
      local name = literals(call)()
      if name and name:find("^%l+_[%l_]+$") then
        expect(file, "metric", name)
      end
    end
  end
end


local reserved = {}
for name in read(DECLARE):match("host_loggers%[%] = (%b{})"):gmatch '"([^"]*)"' do
  reserved[name] = "reserved"
end


local function check_loggers(file, text)
  for _, pattern in ipairs(LOGGERS) do
    for name in text:gmatch(pattern) do
      if not reserved[name] then
        report(("%s: logger '%s': not in host_loggers of %s"):format(file, name, DECLARE))
      end
      reserved[name] = "used"
    end
  end
end


-- The documentation shows the file of the alerts itself, so that everybody copies the tested one.
local function check_alerts()
  local file = "deploy/monitoring/alerts.yaml"
  local alerts, tests = read(file), read "deploy/monitoring/alerts_test.yaml"
  local before, shown, after = operations:match "^(.-\n## Alerts\n.-\n```yaml\n)(.-)(```\n.*)$"
  if shown ~= alerts and arg[1] == "--write" then
    local out = assert(io.open("docs/operations.md", "w"))
    out:write(before, alerts, after)
    out:close()
  elseif shown ~= alerts then
    report(("%s: docs/operations.md shows another text; lua5.4 tools/check-operations.lua --write"):format(file))
  end
  for name in alerts:gmatch "alert: (%w+)" do
    if not tests:find('alertname="' .. name .. '"', 1, true) then
      report(("%s: no test of %s in alerts_test.yaml"):format(file, name))
    end
  end
  for metric in alerts:gmatch '([%l_]+){job="moonloop"' do
    if metric ~= "up" then
      expect(file, "metric", metric)
    end
  end
end


check_alerts()
local list = io.popen "git ls-files 'host/*.c' 'cluster/host/*.c'"
for file in list:lines() do
  check_loggers(file, read(file))
  if not file:find "/dev[%._]" and not file:find "^host/base/" and not file:find "^host/cli/" and not NOT_RUN[file] then
    local text = read(file)
    check_lines(file, text)
    check_keys(file, text)
    check_metrics(file, text)
  end
end
list:close()
for name, state in pairs(reserved) do
  if state ~= "used" then
    report(("%s: host_loggers: nothing logs as '%s'"):format(DECLARE, name))
  end
end
os.exit(next(missing) == nil)
