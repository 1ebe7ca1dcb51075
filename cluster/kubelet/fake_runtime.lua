--- A runtime that runs no process: each container does what its caller sets, in the time of the host's clock.
local host = require "cluster.host"

local M = {}
M.__index = M

local Handle = {}
Handle.__index = Handle

-- The exit code of a process that SIGTERM ended.
local EXIT_TERMINATED = 143


--- @param decide function? (pod, container, attempt) -> { after = seconds, code = exit code } | nil: runs until told to
---   end. `ready_after` beside it: seconds until the container is ready, `false`: never. Its readiness probe fails
---   until then; if it has none, it starts only then. When not given, containers of pods with restartPolicy Always
---   run on, and others succeed at once.
function M.new(decide)
  return setmetatable({ decide = decide or M.succeed, running = {}, begun = {}, held = {}, round = 0 }, M)
end


--- The default of fake kubelets: containers of pods with restartPolicy Always run on, others succeed at once.
function M.succeed(pod)
  if pod.spec.restartPolicy ~= "Always" then
    return { after = 0, code = 0 }
  end
end


local function exit(handle, code)
  if handle.is_over then
    return
  end
  handle.is_over = true
  if handle.timer then
    handle.timer:stop()
  end
  handle.runtime.running[handle.key] = nil
  handle.runtime.begun[handle.key] = nil
  handle.run.on_exit { code = code }
end


local function key_of(pod, container)
  return pod.metadata.uid .. "/" .. container.name
end


-- Seconds until the container is ready; 0 when it is, or may be.
local function time_to_ready(self, run, outcome)
  local key, after = key_of(run.pod, run.container), outcome and outcome.ready_after
  self.begun[key] = self.begun[key] or host.monotonic()
  if after == nil then
    return 0
  end
  return after and math.max(self.begun[key] + after - host.monotonic(), 0) or math.huge
end


-- Calls again() after so many seconds, or when all are decided again.
local function hold(self, seconds, again)
  local one = {}
  function one.stop()
    if one.timer then
      one.timer:stop()
    end
    one.again = nil
  end
  function one.go()
    local go_on = one.again
    one.stop()
    if go_on then
      go_on()
    end
  end
  one.again = again
  one.timer = seconds < math.huge and host.after(seconds, one.go) or nil
  table.insert(self.held, one)
  return one
end


--- Containers that are not ready are decided again.
function M:decide_again()
  local held = self.held
  self.held, self.round = {}, self.round + 1
  for _, one in ipairs(held) do
    host.defer(one.go)
  end
end


function M:start(run)
  local handle = setmetatable({ runtime = self, run = run, key = key_of(run.pod, run.container) }, Handle)
  local outcome = self.decide(run.pod, run.container, run.attempt)
  local seconds = run.container.readinessProbe and 0 or time_to_ready(self, run, outcome)
  if seconds > 0 then
    return nil, "ContainerCreating", nil, function(again)
      return hold(self, seconds, again)
    end
  end
  self.running[handle.key] = handle
  handle.outcome, handle.round = outcome, self.round
  if outcome and outcome.after then
    handle.timer = host.after(outcome.after, function()
      exit(handle, outcome.code)
    end)
  end
  return handle
end


function Handle:stop()
  host.defer(function()
    exit(self, EXIT_TERMINATED)
  end)
end


function Handle.pre_stop(_, _, fn)
  fn()
end


local function outcome_of(handle)
  local runtime, run = handle.runtime, handle.run
  if handle.round ~= runtime.round then
    handle.outcome, handle.round = runtime.decide(run.pod, run.container, run.attempt), runtime.round
  end
  return handle.outcome
end


-- An answer that would come before the next probe is waited for, so that the container is ready at that instant.
function Handle:probe(probe, fn)
  local run = self.run
  local function left()
    return probe == run.container.readinessProbe and time_to_ready(self.runtime, run, outcome_of(self)) or 0
  end
  local function answer()
    local ready = left() == 0
    fn(ready, not ready and "it is not ready yet" or nil)
  end
  local seconds = left()
  if seconds > 0 and seconds < (probe.periodSeconds or 10) then
    host.after(seconds, answer)
  else
    host.defer(answer)
  end
end


--- Ends the running containers of a pod.
--- @return integer how many there were
function M:finish(pod, code)
  local count = 0
  for _, container in ipairs(pod.spec.containers) do
    local handle = self.running[key_of(pod, container)]
    if handle then
      count = count + 1
      exit(handle, code)
    end
  end
  return count
end


function M.update_volumes()
  return {}
end


function M:forget(pod)
  for _, container in ipairs(pod.spec.containers) do
    self.running[key_of(pod, container)] = nil
    self.begun[key_of(pod, container)] = nil
  end
end


return M
