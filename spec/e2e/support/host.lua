-- The moonloop binary as a process: started, watched through its log and its endpoints, and
-- stopped. The function that stops it also reads the reports of the build's sanitizers.
local cjson = require "cjson.safe"
local http = require "spec.e2e.support.http"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local M = {}
M.__index = M

--- The binary under test.
M.binary = os.getenv "MOONLOOP" or "build/release/moonloop"

local running = {}

local SANITIZERS = {
  "AddressSanitizer", "LeakSanitizer", "UndefinedBehaviorSanitizer", "runtime error:", "Assertion .- failed",
}

local function sanitizer_report(text)
  for _, sign in ipairs(SANITIZERS) do
    if text:find(sign) then
      return text
    end
  end
end


local function arguments(opts)
  local words = { "run" }
  local function add(option, values)
    for _, value in ipairs(type(values) == "table" and values or { values }) do
      words[#words + 1] = option
      words[#words + 1] = value
    end
  end
  add("--scripts", opts.scripts)
  add("--scripts-configmap", opts.configmaps)
  add("--namespace", opts.namespaces)
  add("--kubeconfig", opts.kubeconfig)
  add("--metrics-bind-address", "127.0.0.1:0")
  add("--health-probe-bind-address", "127.0.0.1:0")
  for _, word in ipairs(opts.args or {}) do
    words[#words + 1] = word
  end
  return words
end


--- Starts the binary with these words. Its standard output goes to what log() reads.
---@param words string[]
---@param opts table? binary (another one), name (of its files), env, before (shell lines: "ulimit -f 100"),
---  under (a command that executes it)
function M.spawn(words, opts)
  opts = opts or {}
  local self = setmetatable({ files = shell.path(opts.name or "host") }, M)
  local own = shell.line { opts.binary or M.binary, table.unpack(words) }
  local command = ("%s %s %s"):format(shell.env(opts.env), opts.under or "", own)
  command = (opts.before or ":") .. "; exec " .. command
  -- The shell in between waits for it, and writes its exit code down.
  shell.must(([[
    ( { %s; } </dev/null >%s.log 2>%s.err & echo $! >%s.pid; wait $!; echo $? >%s.code ) </dev/null >/dev/null 2>&1 &
    while ! [ -s %s.pid ]; do sleep 0.005; done]]):gsub("%%s", function()
    local word = command or self.files
    command = nil
    return word
  end))
  self.pid = math.tointeger(shell.read(self.files .. ".pid"))
  running[self] = true
  return self
end


--- Starts `moonloop run`. Values may be one string or a list of them.
---@param opts table name (of its files), scripts, configmaps, namespaces, kubeconfig, args, env
function M.start(opts)
  return M.spawn(arguments(opts), opts)
end


--- Returns the text that it has written to standard error.
function M:stderr()
  return shell.read(self.files .. ".err") or ""
end


--- Its log so far, a list of decoded lines; a line that is no JSON becomes { msg = line }.
function M:log()
  local lines = {}
  for line in (shell.read(self.files .. ".log") or ""):gmatch("([^\n]*)\n") do
    lines[#lines + 1] = cjson.decode(line) or { msg = line }
  end
  return lines
end


local function has(line, want)
  for key, value in pairs(want) do
    local is = line[key]
    if type(value) == "string" and type(is) == "string" then
      if not is:find(value, 1, true) then
        return false
      end
    elseif is ~= value then
      return false
    end
  end
  return true
end


--- The lines of the log that have all of `want`: strings as part of the field, others as it is.
---@param want table<string, any> { msg = "script is live", script = "cnat.lua" }
function M:lines(want)
  local found = {}
  for _, line in ipairs(self:log()) do
    if has(line, want) then
      found[#found + 1] = line
    end
  end
  return found
end


--- The warnings and errors of the log that have a plain text in any of their fields.
function M:complaints(text)
  local found = {}
  for _, line in ipairs(self:log()) do
    local bad = line.level == "warn" or line.level == "error"
    if bad and cjson.encode(line):find(text, 1, true) then
      found[#found + 1] = line
    end
  end
  return found
end


local function tail(self)
  local text = (shell.read(self.files .. ".log") or "") .. self:stderr()
  return ("…%s\n(%s.log)"):format(text:sub(-1500), self.files)
end


--- Waits for a line of the log, or for the `count`th of that kind; returns it.
function M:till_log(want, seconds, count)
  return wait.till("the log line " .. cjson.encode(want), seconds or 10, function()
    return self:lines(want)[count or 1], tail(self)
  end)
end


--- The exit code, or nil as long as it runs.
function M:exit_code()
  return math.tointeger(tonumber(shell.read(self.files .. ".code") or ""))
end


local function url(self, path)
  if not self.port then
    self.port = math.tointeger(self:till_log({ msg = "serving" }, 10).health_port)
  end
  -- An address for both: the metrics have the same server.
  return ("http://127.0.0.1:%d%s"):format(self.port, path)
end


--- GET of /healthz, /readyz or /metrics; returns body and status code.
function M:get(path)
  return http.request { url = url(self, path) }
end


--- Waits until /readyz answers ok and every script is live: once it was ready, a replica stays so (decision 0028).
function M:till_ready(seconds)
  wait.till("/readyz to answer ok", seconds or 20, function()
    assert(not self:exit_code(), tail(self))
    local body, code = self:get("/readyz?verbose")
    return code == 200 and self:metric "moonloop_scripts_not_working" == 0, tostring(body) .. tail(self)
  end)
  return self
end


--- The value of a metric, 0 when it has none: metric("x_total", { file = "cnat.lua" }).
---@param name string
---@param labels table<string, string>? those that count
function M:metric(name, labels)
  local sum = 0
  for line in assert(self:get("/metrics")):gmatch("[^\n]+") do
    local series, value = line:match("^([^#%s].-)%s+(%S+)$")
    if series and series:match("^[^{]+") == name then
      local all = true
      for key, text in pairs(labels or {}) do
        all = all and series:find(('%s="%s"'):format(key, text), 1, true)
      end
      sum = sum + (all and tonumber(value) or 0)
    end
  end
  return sum
end


--- Sends a signal.
function M:signal(name)
  shell.run(("kill -%s %d 2>/dev/null"):format(name, self.pid))
end


local function till_exit(self, seconds)
  wait.till("the host to end", seconds, function()
    return self:exit_code() ~= nil, tail(self)
  end)
  running[self] = nil
  local report = sanitizer_report(self:stderr())
  if report then
    error("a sanitizer reports:\n" .. report, 3)
  end
  return self:exit_code()
end


--- Waits for its end; returns the exit code.
function M:till_exit(seconds)
  return till_exit(self, seconds or 30)
end


--- SIGTERM; it must drain, exit 0 and leave nothing for a sanitizer to report. Returns the
--- seconds that took.
function M:stop(seconds)
  local begun = wait.now()
  self:signal "TERM"
  local code = till_exit(self, seconds or 30)
  if code ~= 0 then
    error(("exit code %d after SIGTERM: %s"):format(code, tail(self)), 2)
  end
  return wait.now() - begun
end


--- kill -9.
function M:kill()
  self:signal "KILL"
  till_exit(self, 10)
end


--- Stops every host that a spec left running. For after_each.
function M.stop_all()
  local problem
  for host in pairs(running) do
    local ok, err = pcall(M.stop, host)
    problem = problem or (not ok and err)
    if not ok and running[host] then
      pcall(M.kill, host)
    end
    running[host] = nil
  end
  if problem then
    error(problem, 0)
  end
end


--- Runs the binary with these words to its end; one that has none is ended, with the exit code 124.
---@param words string[]
---@param env table<string, string|false>?
---@return { code: integer, out: string, err: string }
function M.command(words, env)
  local errors = shell.path "stderr"
  local line = ("timeout -k 5 %d %s %s </dev/null 2>%s"):format(
    wait.patient(20), shell.env(env), shell.line { M.binary, table.unpack(words) }, shell.quote(errors))
  local out, code = shell.run(line)
  local result = { code = code, out = out, err = shell.read(errors) }
  local report = sanitizer_report(result.err)
  if report then
    error("a sanitizer reports:\n" .. report, 2)
  end
  return result
end


return M
