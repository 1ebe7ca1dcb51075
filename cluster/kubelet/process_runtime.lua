--- The runtime that runs containers on this machine, with its tools and its user, in its network or one of their own.
---
--- A container has a root of its own, with the machine's tools in it and its volumes where they belong (mounts.lua).
--- Where the machine does not let its user have containers, each is a process in a folder with its volumes
--- (links.lua): this folder is $MOONLOOP_ROOT then, and $HOME. All is deleted with the pod. For missing features see
--- unsupported_features.lua.
local attach = require "cluster.kubelet.attach"
local empty_dirs = require "cluster.kubelet.empty_dirs"
local exec = require "cluster.kubelet.exec"
local host = require "cluster.host"
local images = require "cluster.kubelet.images"
local links = require "cluster.kubelet.links"
local mounts = require "cluster.kubelet.mounts"
local output = require "cluster.kubelet.output"
local probe_actions = require "cluster.kubelet.probe_actions"
local process = require "cluster.process"
local sysctls = require "cluster.kubelet.sysctls"
local termination_message = require "cluster.kubelet.termination_message"
local texts = require "cluster.kubelet.texts"
local unsupported_features = require "cluster.kubelet.unsupported_features"
local volumes = require "cluster.kubelet.volumes"

local M = {}
M.__index = M

local Handle = {}
Handle.__index = Handle

local GRACE_LEAST = 2 -- seconds after a preStop hook, however long that took (minimumGracePeriodInSeconds)
local NO_CONTAINERS = "pods run without containers: your files are theirs, and volumes at absolute paths are refused. "
  .. "Allow user namespaces to change that: see Pods in docs/dev.md"
local NO_MEMORY = "emptyDirs of medium Memory are folders on disk, without a limit"
local HOOK_SECONDS = 3600 -- a postStart hook has no limit of its own; a forgotten one goes at last


--- @param options table
---   directory   an existing folder that belongs to this runtime alone, as an absolute path
---   folders     where volumes of claims are: see ../controllers/persistentvolume_folders.lua; nil: there are none
---   logs        see logs.lua
---   images      the programs that containers of an image run: see images.lua
---   variables   the environment of each container, unless it says otherwise: name → value
---   count_max   processes that a container may have; 512
---   no_containers  the reason, if it is known that this machine has none; else it is found out
---   network     see ../network; nil: containers are in the machine's
function M.new(options)
  return setmetatable({
    directory = options.directory,
    folder = assert(process.open_folder(options.directory)),
    claim_folders = options.folders,
    kept_logs = options.logs,
    images = images.new(options.images),
    variables = options.variables or {},
    count_max = options.count_max,
    network = options.network,
    no_containers = options.no_containers or nil,
    are_containers_known = options.no_containers and true,
    places = {}, -- by uid of the pod: { base = our folder, path = below it, folder = the whole path,
    -- running = processes, is_gone = bool, writers = by name of a volume: see atomic_writer.lua,
    -- immutable = objects that its volumes read once and for all, by "KIND/NAME",
    -- memory = its emptyDirs in memory: cluster.process.Memory; false: it has none }
  }, M)
end


local function place_of(self, pod)
  local uid = pod.metadata.uid
  local place = self.places[uid]
  if not place then
    local path = "pods/" .. uid
    place = {
      base = self.folder, path = path, folder = self.directory .. "/" .. path, running = 0, is_gone = false,
      writers = {}, immutable = {},
    }
    self.places[uid] = place
  end
  return place
end


local function remove_if_over(place)
  if place.is_gone and place.running == 0 then
    if place.memory then
      place.memory:close()
    end
    place.base:remove(place.path)
  end
end


-- Finds out, once, whether containers can be had. @return string|nil why not
local function find_containers(self)
  if self.are_containers_known then
    return self.no_containers
  end
  self.are_containers_known = true
  local ok, why = self.folder:make_folder "try"
  if ok then
    ok, why = process.try_container(self.directory .. "/try")
  end
  if not ok then
    self.no_containers = why
    host.log("warn", NO_CONTAINERS, { error = why })
  end
  return self.no_containers
end


-- The environment as a list, sorted, so that it is the same each time.
local function environment(self, run, plan)
  local all = {
    PATH = os.getenv "PATH",
    HOME = plan.home,
    HOSTNAME = mounts.hostname(run.pod),
    MOONLOOP_ROOT = plan.root,
    TERM = run.container.tty and "xterm" or nil,
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


--- Why this machine has no containers, or nil.
function M:why_no_containers()
  return find_containers(self)
end


--- From now on pods have a network of their own.
function M:use_network(network)
  self.network = network
end


-- The network that a pod's containers are in. @return userdata|nil nil: the machine's; or nil and why there is none
local function enter_network(self, run)
  if not self.network or run.pod.spec.hostNetwork then
    return nil
  end
  run.resolver = self.network.RESOLVER
  return self.network:enter(run.pod, sysctls.of_network(run.pod))
end


-- True if the first word of a command means the program at a path.
local function calls(word, path)
  return word == path or word == path:match "[^/]*$"
end


-- The memory that the node has for pods, as far as it says so.
local function allocatable(run)
  local node = run.read("Node", nil, run.pod.spec.nodeName)
  return ((node and node.status or {}).allocatable or {}).memory
end


-- Makes the pod's emptyDirs in memory, once. Where the machine lets its user have none they are folders like others.
local function ensure_memory(self, place, run, network)
  if place.memory ~= nil then
    return
  end
  local list, why = empty_dirs.in_memory(place, run.pod, function()
    return allocatable(run)
  end)
  if list and list[1] then
    why = self.no_containers
    if not why then
      place.memory, why = process.memory(list, network)
    end
  end
  if why and not self.is_told_of_memory then
    self.is_told_of_memory = true
    host.log("warn", NO_MEMORY, { error = why })
  end
  place.memory = place.memory or false
end


-- Prepares a start. @return table|nil handle, or nil, reason and message
local function prepare(self, run)
  local why = images.problem_of_name(run.container.image)
  if why then
    return nil, "InvalidImageName", why
  end
  local program = self.images:find(run.container)
  local command, reason, message = unsupported_features.command(run.container, run.command, program)
  local no_containers = find_containers(self)
  if command then
    reason, message = unsupported_features.problem(run.pod, run.container, (process.user()), no_containers)
  end
  if reason then
    return nil, reason, message
  end
  if no_containers and program and calls(command[1], program.target) then
    command[1] = program.source or command[1]
  end
  local network
  network, why = enter_network(self, run)
  if why then
    return nil, "RunContainerError", "the pod's network: " .. why
  end
  local place = place_of(self, run.pod)
  ensure_memory(self, place, run, network)
  local plan
  run.claim_folders = self.claim_folders
  plan, why = (no_containers and links or mounts).plan(place, run, program)
  if not plan then
    return nil, "CreateContainerConfigError", why
  end
  local env = environment(self, run, plan)
  local problem = texts.problem(command, env, plan)
  if problem then
    return nil, "CreateContainerError", problem
  end
  local handle = setmetatable({
    run = run,
    place = place,
    command = command,
    network = network,
    plan = plan,
    directory = plan.directory,
    env = env,
    count_max = self.count_max,
    beside = {}, -- further commands: exec.lua
    attachments = {}, -- see attach.lua
    waiting = {}, -- functions that wait for its start
    is_over = false,
  }, Handle)
  output.begin(handle)
  return handle
end


-- One more process of the pod, one less.
function Handle:add_process()
  self.place.running = self.place.running + 1
end


function Handle:remove_process()
  self.place.running = self.place.running - 1
  remove_if_over(self.place)
end


-- It printed something. @param stream string "output" or "errors"
local function took(self, stream, bytes)
  output.keep(self, stream, bytes)
  attach.broadcast(self, stream, bytes)
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
  for running in pairs(self.beside) do
    running:stop(0)
  end
  self.log:close()
  attach.over(self, how)
  self:remove_process()
  local message = termination_message.read(self.hook_failure or how.message, self.place.base, self.plan.message,
    self.log, how.code, self.run.container.terminationMessagePolicy)
  self.run.on_exit { code = how.code, reason = reason_of(how), message = message }
end


local function hook_of(self, name)
  local lifecycle = self.run.container.lifecycle
  return lifecycle and lifecycle[name]
end


-- It runs: what waited for that has its turn.
local function started(self)
  local waiting = self.waiting
  self.waiting = nil
  for _, fn in ipairs(waiting) do
    fn()
  end
end


--- Calls fn once the container runs: now, later, or never.
function Handle:when_started(fn)
  if self.waiting then
    table.insert(self.waiting, fn)
  else
    fn()
  end
end


-- A container whose postStart hook fails is killed.
local function run_post_start(self)
  local hook = hook_of(self, "postStart")
  if hook then
    probe_actions.act(self, hook, HOOK_SECONDS, function(ok, message)
      if not ok then
        self.hook_failure = "PostStartHook failed: " .. message
        self.process:stop(0)
      end
    end)
  end
end


-- The first process of a container. With `stdin` alone its two outputs are told apart, as `kubectl attach` wants them:
-- the order between them is lost with that, which the log of other containers keeps.
local function start_process(self, handle)
  local container = handle.run.container
  local is_split = container.stdin and not container.tty
  return process.start {
    argv = handle.command,
    env = handle.env,
    directory = handle.directory,
    container = handle.plan.container,
    network = handle.network,
    memory = handle.place.memory or nil,
    count_max = self.count_max,
    input = container.stdin,
    terminal = container.tty and {} or nil,
    started = function()
      started(handle)
    end,
    output = function(bytes)
      took(handle, "output", bytes)
    end,
    errors = is_split and function(bytes)
      took(handle, "errors", bytes)
    end or nil,
    drained = function()
      attach.drained(handle)
    end,
    ended = function(how)
      over(handle, how)
    end,
  }
end


--- See pod_worker.lua. A missing command is not a failure to start: it exits with 128 and says so, as in containerd.
function M:start(run)
  local handle, reason, message = prepare(self, run)
  if not handle then
    return nil, reason, message
  end
  local running, why = start_process(self, handle)
  if not running then
    return nil, "RunContainerError", why
  end
  handle.process = running
  handle.log = self.kept_logs:open(run.pod, run.container.name, run.attempt)
  handle:add_process()
  run_post_start(handle)
  return handle
end


--- Asks it to end, all its processes, after its preStop hook; what is left after `seconds` is killed.
function Handle:stop(seconds)
  local hook = hook_of(self, "preStop")
  if seconds == 0 then
    output.let_go(self)
  end
  if not hook or self.is_stopping or seconds == 0 then
    self.process:stop(seconds)
    return
  end
  local deadline = host.monotonic() + seconds
  self:pre_stop(seconds, function()
    self.process:stop(math.max(deadline - host.monotonic(), GRACE_LEAST))
  end)
end


--- See pod_worker.lua.
function Handle:pre_stop(seconds, fn)
  local hook = hook_of(self, "preStop")
  if not hook or self.is_stopping then
    return fn()
  end
  self.is_stopping = true
  probe_actions.act(self, hook, seconds, fn)
end


--- See probe_actions.lua.
function Handle:probe(probe, fn)
  probe_actions.act(self, probe, probe.timeoutSeconds or 1, fn)
end


--- Runs a further command in it; how it ended is told as a runtime of containers would. See exec.lua.
function Handle:exec(options)
  local ended, own = options.ended, {}
  for name, value in pairs(options) do
    own[name] = value
  end
  function own.ended(how)
    ended(exec.as_runtime_says(how))
  end
  return exec.start(self, own)
end


--- See attach.lua.
function Handle:attach(options)
  return attach.add(self, options)
end


--- See pod_worker.lua.
function M:update_volumes(run)
  return volumes.update(place_of(self, run.pod), run)
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
