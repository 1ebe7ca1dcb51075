--- A runtime that runs no process: each container does what its caller sets, in the time of the host's clock.
local host = require "cluster.host"

local M = {}
M.__index = M

local Handle = {}
Handle.__index = Handle

-- The exit code of a process that SIGTERM ended.
local EXIT_TERMINATED = 143


--- @param decide function? (pod, container) -> { after = seconds, code = exit code } | nil: runs until told to end.
---   When not given, containers of pods with restartPolicy Always run on, and others succeed at once.
function M.new(decide)
  return setmetatable({ decide = decide or M.succeed, running = {} }, M)
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
  handle.run.on_exit { code = code }
end


local function key_of(pod, container)
  return pod.metadata.uid .. "/" .. container.name
end


function M:start(run)
  local handle = setmetatable({ runtime = self, run = run, key = key_of(run.pod, run.container) }, Handle)
  local outcome = self.decide(run.pod, run.container)
  self.running[handle.key] = handle
  if outcome then
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


function Handle.probe(_, _, fn)
  host.defer(function()
    fn(true)
  end)
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
  end
end


return M
