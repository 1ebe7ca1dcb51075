--- The worker of one pod: starts its containers in order, restarts them as restartPolicy says, ends them when the pod
--- is deleted, and keeps pod.status up to date.
---
--- A *runtime* (fake_runtime.lua, process_runtime.lua) runs the containers:
---   runtime:start(run) -> handle | nil, reason, message, later
---     run = { pod =, container =, variables =, command =, attempt =, read =, token =, on_exit = function(exit) end }
---     with exit = { code =, signal =, reason =, message = }; never called inside start. read and token come
---     from the kubelet, for volumes. later(again): not a failure; it calls again() when the container
---                                     can start, not inside this call, and returns { stop = method }
---   handle:stop(seconds)              asks the container to end, and kills it after that time; on_exit follows.
---                                     Its preStop hook comes first, unless that has been run
---   handle:pre_stop(seconds, fn)      runs its preStop hook alone, within that time, and calls fn() then: at once
---                                     where there is none, and not at all once the container has ended
---   handle:probe(probe, fn)           does one check and calls fn(ok, message), not inside this call
---   handle:exec(options)              runs a further command in the container: exec.lua; nil where none can be run
---   handle:attach(options)            passes on its output, and input to it: attach.lua; nil as well
---   runtime:update_volumes(run)       gives a pod's volumes the files that their sources have now; run has pod, read,
---                                     token, and has_started: false before the pod's first container. Returns a list
---                                     of texts: why that could not be done
---   runtime:forget(pod)               deletes the data of a deleted pod (logs)
local env = require "cluster.kubelet.env"
local host = require "cluster.host"
local image_pulls = require "cluster.kubelet.image_pulls"
local instant = require "cluster.apiserver.instant"
local pod_ending = require "cluster.kubelet.pod_ending"
local prober = require "cluster.kubelet.prober"
local records = require "cluster.kubelet.record"
local status = require "cluster.kubelet.status"

local M = {}
M.__index = M

local GRACE_DEFAULT = 30
local DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


-- Takes in a version of the pod. It keeps the address and the start that it once had, though a version that was written
-- before the kubelet's first word on it does not say so.
local function take(self, pod)
  local known = {}
  for key, value in pairs(pod.status or {}) do
    known[key] = value
  end
  self.address = self.address or self.kubelet:pod_address(pod, known.podIP)
  known.hostIP, known.podIP = self.kubelet.address, self.address
  known.hostIPs = host.json.array { { ip = known.hostIP } }
  known.podIPs = known.podIP and host.json.array { { ip = known.podIP } }
  self.started_at = self.started_at or known.startTime and instant.read(known.startTime) or host.now()
  self.start_time = self.start_time or known.startTime or host.timestamp()
  known.startTime = self.start_time
  self.stored = { metadata = pod.metadata, status = pod.status }
  pod.status = known
  self.pod = pod
end


-- Counts the time that the pod has, as its spec says now, from its start.
-- Rules: kubernetes/pkg/kubelet/active_deadline.go.
local function watch_deadline(self)
  local seconds = self.pod.spec.activeDeadlineSeconds
  if self.deadline and seconds ~= self.deadline_seconds then
    self.deadline:stop()
    self.deadline = nil
  end
  self.deadline_seconds = seconds
  local left = seconds and self.started_at + seconds - host.now()
  if left and left <= 0 then
    self:fail("DeadlineExceeded", DEADLINE_MESSAGE)
  elseif left and not self.deadline then
    self.deadline = host.after(left, function()
      self:fail("DeadlineExceeded", DEADLINE_MESSAGE)
    end)
  end
end


--- A worker for a pod that has a node.
--- @param kubelet table with runtime, read (see env.variables), write_status(pod, status), remove(pod), event(pod, …),
---   services (see env.variables), address and pod_address(pod, known)
--- @param pod table as stored
function M.new(kubelet, pod)
  local reason = next(pod.spec.initContainers or {}) and "PodInitializing" or "ContainerCreating"
  local self = setmetatable({
    kubelet = kubelet,
    init = records.list(pod.spec.initContainers, true, reason),
    containers = records.list(pod.spec.containers, false, reason),
  }, M)
  take(self, pod)
  watch_deadline(self)
  return self
end


-- Everything that changed in this turn of the loop is written at once.
function M:queue_write()
  if self.is_dirty or self.is_gone then
    return
  end
  self.is_dirty = true
  host.defer(function()
    self.is_dirty = false
    if not self.is_gone then
      self:write()
    end
  end)
end


function M:write()
  self.kubelet:write_status(self.stored,
    status.of(self.pod, self.init, self.containers, self.failure, host.timestamp()))
end


-- Starts it again after a pause, which its status tells of.
function M:start_again(record, seconds)
  local over = record.state
  local function again()
    record.timer = nil
    record.last = over
    record.restarts = record.restarts + 1
    self:start(record)
  end
  if seconds == 0 then
    record.timer = host.after(0, again)
    return
  end
  record.last = over
  record.state = {
    waiting = {
      reason = "CrashLoopBackOff",
      message = ("back-off %ds restarting failed container=%s pod=%s_%s(%s)"):format(seconds, record.spec.name,
        self.pod.metadata.name, self.pod.metadata.namespace, self.pod.metadata.uid),
    },
  }
  local what = "Back-off restarting failed container %s in pod %s_%s(%s)"
  self.kubelet:event(self.pod, "Warning", "BackOff", what:format(record.spec.name, self.pod.metadata.name,
    self.pod.metadata.namespace, self.pod.metadata.uid))
  record.timer = host.after(seconds, again)
end


-- Each record that still runs or waits for a start.
local function each_open(self, fn)
  for _, list in ipairs { self.init, self.containers } do
    for _, record in ipairs(list) do
      if record.timer then
        record.timer:stop()
        record.timer = nil
      end
      if record.handle then
        fn(record)
      end
    end
  end
end


-- Asks all containers to end within so many seconds. 0: kills them.
local function stop_all(self, seconds)
  each_open(self, prober.stop_killing)
  self.ending = pod_ending.begin(self.init, self.containers, seconds)
end


function M:on_exit(record, exit)
  local has_other_image = record.has_other_image
  record.has_other_image = nil
  prober.stop(record)
  records.ended(record, exit)
  if self.ending then
    self.ending:go_on()
  end
  if self.is_stopping then
    self:end_if_over()
  elseif has_other_image and not self.failure and not self.is_over then
    record.last, record.restarts = record.state, record.restarts + 1
    self:start(record)
  elseif not self.failure and not self.is_over and records.may_restart(record, self.pod.spec.restartPolicy) then
    self:start_again(record, records.pause(record, host.monotonic() - record.started_at))
  else
    self:sync()
  end
  self:queue_write()
end


local function cannot_start(self, record, reason, message, later)
  local function again()
    record.timer = nil
    self:start(record)
  end
  if later then
    record.state = { waiting = { reason = reason, message = message } }
    record.timer = later(again)
  elseif image_pulls.is_reason(reason) then
    image_pulls.failed(record, reason, message, {
      event = function(...)
        self.kubelet:event(self.pod, ...)
      end,
      changed = function()
        self:queue_write()
      end,
      again = again,
    })
  else
    record.state = { waiting = { reason = reason, message = message } }
    self.kubelet:event(self.pod, "Warning", "Failed", "Error: " .. message)
    record.timer = host.after(records.TRY_AGAIN, again)
  end
  self:queue_write()
end


function M:start(record)
  local variables, why = env.variables(self.pod, record.spec, self.kubelet.read, self.kubelet.services(self.pod))
  if not variables then
    return cannot_start(self, record, "CreateContainerConfigError", why)
  end
  local handle, reason, message, later = self.kubelet.runtime:start {
    pod = self.pod,
    container = record.spec,
    variables = variables,
    command = env.command_line(record.spec, variables),
    attempt = record.restarts,
    read = self.kubelet.read,
    token = self.kubelet.token,
    on_exit = function(exit)
      self:on_exit(record, exit)
    end,
  }
  if not handle then
    return cannot_start(self, record, reason, message, later)
  end
  record.handle = handle
  record.id = ("moonloop://%s/%s/%d"):format(self.pod.metadata.uid, record.spec.name, record.restarts)
  record.state = { running = { startedAt = host.timestamp() } }
  record.started_at = host.monotonic()
  self.kubelet:event(self.pod, "Normal", "Started", "Container started")
  self:probe(record)
  self:queue_write()
end


function M:probe(record)
  prober.start(record, {
    changed = function()
      self:queue_write()
      self:sync()
    end,
    unhealthy = function(kind, message)
      local why = message:gsub("%s+$", "") -- commands end their lines
      self.kubelet:event(self.pod, "Warning", "Unhealthy", ("%s probe failed: %s"):format(kind, why))
    end,
    kill = function(message, seconds)
      self.kubelet:event(self.pod, "Normal", "Killing", ("Container %s %s"):format(record.spec.name, message))
      record.handle:stop(seconds or self.pod.spec.terminationGracePeriodSeconds or GRACE_DEFAULT)
    end,
  })
end


local function are_over(self)
  for _, record in ipairs(self.containers) do
    if not records.is_over(record) or not records.is_idle(record) then
      return false
    end
  end
  return true
end


--- Starts what is to be started next.
function M:sync()
  if self.is_stopping or self.failure or self.is_over then
    return
  end
  for _, record in ipairs(self.init) do
    if record.state.waiting and records.is_idle(record) then
      self:start(record)
    end
    if not records.is_complete(record) then
      return
    end
  end
  for _, record in ipairs(self.containers) do
    if record.state.waiting and records.is_idle(record) then
      self:start(record)
    end
  end
  if are_over(self) then
    self.is_over = true
    stop_all(self, self.pod.spec.terminationGracePeriodSeconds or GRACE_DEFAULT)
  end
end


local function has_ended(self)
  local phase = status.phase(self.pod.spec.restartPolicy, self.init, self.containers)
  return phase == "Succeeded" or phase == "Failed"
end


--- Ends the pod's containers, and says that it failed. A pod that has ended by itself stays as it is.
function M:fail(reason, message)
  if self.failure or self.is_stopping or has_ended(self) then
    return
  end
  self.failure = { reason = reason, message = message }
  self.kubelet:event(self.pod, "Normal", reason, message)
  stop_all(self, self.pod.spec.terminationGracePeriodSeconds or GRACE_DEFAULT)
  self:queue_write()
end


function M:end_if_over()
  local running = false
  each_open(self, function()
    running = true
  end)
  if not running and not self.is_removed then
    self.is_removed = true
    self:write()
    self.kubelet:remove(self.pod)
  end
end


-- Takes in the containers of a newer version: their images may be others. One that runs is started again then,
-- whatever the pod's restartPolicy.
-- Rules: kubernetes/pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, containerChanged).
local function take_containers(self, list, specs)
  for i, record in ipairs(list) do
    if record.handle and not record.has_other_image and record.spec.image ~= specs[i].image then
      record.has_other_image = true
      self.kubelet:event(self.pod, "Normal", "Killing",
        ("Container %s definition changed, will be restarted"):format(record.spec.name))
      record.handle:stop(self.pod.spec.terminationGracePeriodSeconds or GRACE_DEFAULT)
    end
    record.spec = specs[i]
  end
end


-- The pod is to go: its containers end within its grace period.
local function begin_deletion(self)
  self.is_stopping = true
  self.kubelet:event(self.pod, "Normal", "Killing", "Stopping container")
  stop_all(self, self.pod.metadata.deletionGracePeriodSeconds or GRACE_DEFAULT)
  self:queue_write()
  self:end_if_over()
end


--- Takes in a new version of the pod.
function M:update(pod)
  take(self, pod)
  watch_deadline(self)
  if pod.metadata.deletionTimestamp and not self.is_stopping then
    begin_deletion(self)
  elseif not (self.is_stopping or self.failure or self.is_over) then
    take_containers(self, self.init, pod.spec.initContainers)
    take_containers(self, self.containers, pod.spec.containers)
  end
  if pod.spec.readinessGates or pod.metadata.generation ~= pod.status.observedGeneration then
    self:queue_write() -- somebody may have opened or closed a gate; the status says which spec it is about
  end
end


-- From now on neither is anything started nor the pod's status written.
local function let_go(self)
  self.is_gone = true
  self.is_stopping = true
  self.is_removed = true
  each_open(self, prober.stop)
  if self.deadline then
    self.deadline:stop()
  end
end


--- The pod is gone: whatever still runs is killed.
function M:close()
  let_go(self)
  stop_all(self, 0)
  self.kubelet.runtime:forget(self.pod)
end


--- The node goes down: asks the containers to end, and leaves the pod as it is stored. Then comes close().
function M:shut_down()
  local seconds = self.pod.spec.terminationGracePeriodSeconds or GRACE_DEFAULT
  let_go(self)
  stop_all(self, self.pod.metadata.deletionGracePeriodSeconds or seconds)
end


--- How many of its containers run.
function M:running()
  local count = 0
  each_open(self, function()
    count = count + 1
  end)
  return count
end


--- The handle of a container that runs, or nil.
function M:handle(name)
  for _, list in ipairs { self.init, self.containers } do
    for _, record in ipairs(list) do
      if record.spec.name == name then
        return record.handle
      end
    end
  end
end


return M
