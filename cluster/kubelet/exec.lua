--- Further commands in a container that runs: those of `kubectl exec`, and of probes and hooks (probe_actions.lua).
---
--- Where the machine has no containers, they are processes in the folder of the pod, and end with the container, too.
local host = require "cluster.host"
local process = require "cluster.process"
local texts = require "cluster.kubelet.texts"

local M = {}

local Running = {}
Running.__index = Running

local INPUT_MAX, INPUT_LOW = 4 * 1024 * 1024, 64 * 1024 -- as process.start has them
local PIECES_MAX = 1000 -- of input, before they are put together
local KILLED = 137
local NOT_FOUND, NOT_EXECUTABLE = 127, 126 -- as runc exits


-- The environment of the container's first process; whoever has a terminal knows of what kind it is.
local function environment(handle, has_terminal)
  if not has_terminal then
    return handle.env
  end
  local env = {}
  for i, variable in ipairs(handle.env) do
    if variable:find "^TERM=" then
      return handle.env
    end
    env[i] = variable
  end
  env[#env + 1] = "TERM=xterm"
  return env
end


-- The last word. @param how table see process.End
local function ended(self, how)
  self.process, self.is_over = nil, true
  self.handle.beside[self] = nil
  self.handle:remove_process()
  self.options.ended(how)
end


local function not_started(self, why)
  self.is_over = true
  host.defer(function()
    ended(self, { code = KILLED, started = false, message = why })
  end)
end


-- Passes on what was asked of it before it could be started.
local function catch_up(self)
  local bytes, was_much = table.concat(self.waiting), self.size >= INPUT_LOW
  self.waiting, self.size = nil, 0
  if self.is_paused then
    self.process:pause(true)
  end
  local waits = bytes ~= "" and self.process:write(bytes) or 0
  if self.is_input_over then
    self.process:end_input()
  end
  if was_much and waits < INPUT_LOW and self.options.drained then
    self.options.drained()
  end
end


local function begin(self)
  if self.is_over then
    return
  end
  local handle, options = self.handle, self.options
  local problem = texts.problem_of_command(options.command)
  if problem then
    return not_started(self, problem)
  end
  local started, why = process.start {
    argv = options.command,
    env = environment(handle, options.tty),
    directory = handle.directory,
    beside = handle.plan.container and handle.process,
    count_max = handle.count_max,
    input = options.stdin,
    terminal = options.tty and self.terminal or nil,
    output = options.output,
    errors = not options.tty and options.errors or nil,
    drained = options.drained,
    ended = function(how)
      ended(self, how)
    end,
  }
  if not started then
    return not_started(self, why)
  end
  self.process = started
  catch_up(self)
end


--- Starts a command once the container has started, or at once. Callbacks come from the loop.
--- @param handle table of process_runtime.lua
--- @param options table
---   command  its words
---   stdin    bool: it has an input, which Running:write writes
---   tty      bool: it has a terminal
---   output   fn(bytes)
---   errors   fn(bytes); nil, or with tty: all comes to output
---   drained  fn() once less than 64 KiB of input wait again; may be nil
---   ended    fn(how) once, at last; how = { code =, signal =, started =, message = }
--- @return table|nil running, or nil and why not; nothing is called then
function M.start(handle, options)
  if handle.is_over then
    return nil, "the container does not run"
  end
  local self = setmetatable({
    handle = handle, options = options, waiting = {}, size = 0, terminal = {}, is_over = false,
  }, Running)
  handle.beside[self] = true
  handle:add_process()
  handle:when_started(function()
    begin(self)
  end)
  return self
end


--- The end of a command as a container runtime reports it: a command that cannot be started exits with 127 or 126.
--- @param how table see M.start
--- @return table { code =, signo =, started =, message = }
function M.as_runtime_says(how)
  if how.started then
    return { code = how.code, signo = how.signal, started = true, message = how.message }
  end
  local is_missing = how.message:find("executable file not found in $PATH", 1, true)
    or how.message:find("^exec: .*: no such file or directory$")
  return {
    code = is_missing and NOT_FOUND or NOT_EXECUTABLE,
    started = false,
    message = "OCI runtime exec failed: exec failed: unable to start container process: " .. how.message,
  }
end


--- @return integer|nil waiting bytes that wait in this process; 0 when it reads none; nil when more than INPUT_MAX
---   would: nothing was taken then
function Running:write(bytes)
  if self.process then
    return self.process:write(bytes)
  elseif self.is_over or not self.options.stdin or self.is_input_over then
    return 0
  elseif self.size + #bytes > INPUT_MAX then
    return nil
  end
  if #self.waiting == PIECES_MAX then
    self.waiting = { table.concat(self.waiting) }
  end
  table.insert(self.waiting, bytes)
  self.size = self.size + #bytes
  return self.size
end


--- It reads the end of its input behind what was written. Nothing happens with a terminal, as with containerd.
function Running:end_input()
  self.is_input_over = true
  if self.process then
    self.process:end_input()
  end
end


--- Sets the size of its terminal.
function Running:resize(columns, rows)
  self.terminal = { columns = columns, rows = rows }
  if self.process then
    self.process:resize(columns, rows)
  end
end


--- While paused its output stays where it is, and it waits.
function Running:pause(paused)
  self.is_paused = paused
  if self.process then
    self.process:pause(paused)
  end
end


--- To its group of processes.
function Running:signal(number)
  if self.process then
    self.process:signal(number)
  end
end


--- Asks it to end, and kills it after that time.
function Running:stop(seconds)
  if self.process then
    self.process:stop(seconds)
  elseif not self.is_over then
    not_started(self, "the container has ended")
  end
end


return M
