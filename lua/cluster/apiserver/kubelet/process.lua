--- The runtime that runs each container as a local process, with the tools, the network and the user of the machine.
---
--- A container starts in its own folder, which has its volumes: a volume mounted at /etc/x is at etc/x in this folder.
--- The folder is $MOONLOOP_ROOT and $HOME, and is deleted with the pod. For missing features see fit.lua.
local ask = require "cluster.apiserver.kubelet.ask"
local fit = require "cluster.apiserver.kubelet.fit"
local host = require "cluster.host"
local process = require "cluster.process"
local volumes = require "cluster.apiserver.kubelet.volumes"

local M = {}
M.__index = M

local Handle = {}
Handle.__index = Handle

-- A container that prints without end is slowed down: for each second that its lines take us it waits so many. What
-- it owes is collected up to some milliseconds, so that others are not slowed down at all.
local WAIT_SHARE, WAIT_LEAST = 3, 0.01

local GRACE_LEAST = 2 -- seconds after a preStop hook, however long that took (minimumGracePeriodInSeconds)
local HOOK_SECONDS = 3600 -- a postStart hook has no limit of its own; a forgotten one goes at last


--- @param options table
---   directory   an existing folder that belongs to this runtime alone
---   logs        see logs.lua
---   variables   what is in the environment of each container, unless it says otherwise: name → value
---   count_max   processes that a container may have; 512
function M.new(options)
  return setmetatable({
    directory = options.directory,
    kept_logs = options.logs,
    variables = options.variables or {},
    count_max = options.count_max,
    places = {}, -- by uid of the pod: { folder =, running = processes, is_gone = bool }
  }, M)
end


local function place_of(self, pod)
  local uid = pod.metadata.uid
  local place = self.places[uid]
  if not place then
    place = { folder = ("%s/pods/%s"):format(self.directory, uid), running = 0, is_gone = false }
    self.places[uid] = place
  end
  return place
end


local function remove_if_over(place)
  if place.is_gone and place.running == 0 then
    process.remove(place.folder)
  end
end


-- The environment as a list, sorted, so that it is the same each time.
local function environment(self, run, folder)
  local all = {
    PATH = os.getenv "PATH",
    HOME = folder,
    HOSTNAME = run.pod.spec.hostname or run.pod.metadata.name,
    MOONLOOP_ROOT = folder,
  }
  for _, variables in ipairs { self.variables, run.variables } do
    for name, value in pairs(variables) do
      all[name] = value
    end
  end
  local list = {}
  for name, value in pairs(all) do
    list[#list + 1] = name .. "=" .. value
  end
  table.sort(list)
  return list
end


-- Where it starts: its folder, or workingDir below that, which is made when it is not there.
local function working_folder(container, folder)
  if not container.workingDir or container.workingDir == "" then
    return folder
  end
  local path = folder .. "/" .. container.workingDir
  local ok, why = process.make_folder(path)
  if not ok then
    return nil, why
  end
  return path
end


-- What goes in front of a start. @return table|nil handle, or nil, reason and message
local function prepare(self, run)
  local command, reason, message = fit.command(run.container, run.command)
  if command then
    reason, message = fit.problem(run.pod, run.container, process.user())
  end
  if reason then
    return nil, reason, message
  end
  local place = place_of(self, run.pod)
  local folder, why = volumes.prepare(place.folder, run)
  local directory
  if folder then
    directory, why = working_folder(run.container, folder)
  end
  if not directory then
    return nil, "CreateContainerConfigError", why
  end
  return setmetatable({
    run = run,
    place = place,
    command = command,
    directory = directory,
    env = environment(self, run, folder),
    asking = {}, -- processes of probes
    is_over = false,
    owed = 0, -- seconds to wait, as of `seen`
    seen = host.monotonic(),
  }, Handle)
end


-- One more process of the pod, one less.
function Handle:entered()
  self.place.running = self.place.running + 1
end


function Handle:left()
  self.place.running = self.place.running - 1
  remove_if_over(self.place)
end


local function took(self, bytes)
  local start = host.monotonic()
  self.log:write(bytes)
  local now = host.monotonic()
  self.owed = math.max(self.owed - (start - self.seen), 0) + (now - start) * WAIT_SHARE
  self.seen = now
  if self.owed > WAIT_LEAST then
    self.process:pause(true)
    host.after(self.owed, function()
      self.process:pause(false)
    end)
  end
end


local function reason_of(how)
  if not how.started then
    return "StartError"
  elseif how.too_many then
    return "TooManyProcesses"
  end
end


local function over(self, how)
  self.is_over = true
  for probing in pairs(self.asking) do
    probing:stop(0)
  end
  self.log:close()
  self:left()
  local message = self.hook_failure or how.message
  self.run.on_exit { code = how.code, reason = reason_of(how), message = message ~= "" and message or nil }
end


local function hook_of(self, name)
  local lifecycle = self.run.container.lifecycle
  return lifecycle and lifecycle[name]
end


-- A container whose postStart hook fails is killed.
local function run_post_start(self)
  local hook = hook_of(self, "postStart")
  if hook then
    ask.act(self, hook, HOOK_SECONDS, function(ok, message)
      if not ok then
        self.hook_failure = "PostStartHook failed: " .. message
        self.process:stop(0)
      end
    end)
  end
end


--- See worker.lua. A command that is not there is no failure to start: it exits with 128 and says so, as containerd
--- has it.
function M:start(run)
  local handle, reason, message = prepare(self, run)
  if not handle then
    return nil, reason, message
  end
  local started, why = process.start {
    argv = handle.command,
    env = handle.env,
    directory = handle.directory,
    count_max = self.count_max,
    output = function(bytes)
      took(handle, bytes)
    end,
    ended = function(how)
      over(handle, how)
    end,
  }
  if not started then
    return nil, "RunContainerError", why
  end
  handle.process = started
  handle.log = self.kept_logs:open(run.pod, run.container.name, run.attempt)
  handle:entered()
  run_post_start(handle)
  return handle
end


--- Asks it to end, all its processes, after its preStop hook; what is left after `seconds` is killed.
function Handle:stop(seconds)
  local hook = hook_of(self, "preStop")
  if not hook or self.is_stopping or seconds == 0 then
    self.process:stop(seconds)
    return
  end
  self.is_stopping = true
  local deadline = host.monotonic() + seconds
  ask.act(self, hook, seconds, function()
    self.process:stop(math.max(deadline - host.monotonic(), GRACE_LEAST))
  end)
end


--- See ask.lua.
function Handle:probe(probe, fn)
  ask.act(self, probe, probe.timeoutSeconds or 1, fn)
end


--- The pod is gone. Its folder goes when the last of its processes has.
function M:forget(pod)
  local place = place_of(self, pod)
  self.places[pod.metadata.uid] = nil
  self.kept_logs:forget(pod)
  place.is_gone = true
  remove_if_over(place)
end


return M
