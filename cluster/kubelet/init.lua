--- Scheduler and kubelet of the one node: gives each pod the node, and a worker that runs it.
---
---   local kubelet = require("cluster.kubelet").new(server, { runtime = fake.new() })
---   kubelet:start()
local connections = require "cluster.kubelet.connections"
local event_body = require "cluster.event"
local heartbeat = require "cluster.kubelet.heartbeat"
local host = require "cluster.host"
local kubelet_server = require "cluster.kubelet.server"
local log_subresource = require "cluster.kubelet.log_subresource"
local pod_capacity = require "cluster.kubelet.pod_capacity"
local pod_worker = require "cluster.kubelet.pod_worker"
local scheduler_filters = require "cluster.kubelet.scheduler_filters"
local service_env = require "cluster.kubelet.service_env"
local sysctls = require "cluster.kubelet.sysctls"
local volume_updates = require "cluster.kubelet.volume_updates"

local M = {}
M.__index = M

local NODE, OS = "moonloop", "linux"
local USER = { name = "system:node:" .. NODE, groups = { "system:nodes", "system:authenticated", "system:masters" } }
local AGENT, SCHEDULER = "kubelet", "default-scheduler"
local LOOPBACK, NOWHERE = "127.0.0.1", "192.0.2.1"

-- The resources that pods refer to, by kind.
local READABLE = {
  ConfigMap = "configmaps", Secret = "secrets", PersistentVolumeClaim = "persistentvolumeclaims",
  PersistentVolume = "persistentvolumes", Node = "nodes",
}


--- @param server table the API server
--- @param options table
---   runtime  see pod_worker.lua
---   machine  { address =, architecture =, kernel = }: the machine that runs the pods' processes; nil if nothing runs
---            them: they then get addresses that are made up
---            addresses that only look like some
---   resources  { capacity =, allocatable = }: what the node has, see node_resources.lua; nil: nobody asks
---   beats    whether the node says again and again that it is there; see heartbeat.lua
---   max_pods how many pods the node takes; nil: any number
---   find_network  function() -> see ../network, or nil: pods have the machine's. Called once, when the first pod needs
---            it: it takes a while
function M.new(server, options)
  local self = setmetatable({
    server = server, runtime = options.runtime, name = NODE, workers = {}, address_count = 0,
  }, M)
  self.machine = options.machine or { address = NOWHERE, architecture = "amd64", kernel = "" }
  self.is_real = options.machine ~= nil
  self.resources = options.resources or {}
  self.beats = options.beats
  self.pod_capacity = pod_capacity.new(NODE, options.max_pods)
  self.find_network = options.find_network
  self.address = self.machine.address or LOOPBACK
  function self.read(kind, namespace, name)
    local registry = server.registry
    local code, object = self:call("GET", registry.path(registry:find("", "v1", READABLE[kind]), namespace, name))
    return code == 200 and object or nil
  end
  function self.services(pod)
    return self.network and not pod.spec.hostNetwork and service_env.of(server, pod) or {}
  end
  self.volume_updates = volume_updates.new(self)
  function self.token(pod, audience, seconds)
    return self.volume_updates:token(pod, audience, seconds)
  end
  log_subresource.serve(server, options.logs)
  connections.serve(server, self)
  kubelet_server.serve(server, NODE, options.logs)
  server.has_real_pods = self.is_real
  return self
end


function M:call(method, path, body, content_type)
  return self.server:call(method, path, body, { user = USER, user_agent = AGENT, content_type = content_type })
end


local function path_of(pod, subresource)
  local meta = pod.metadata
  return ("/api/v1/namespaces/%s/pods/%s%s"):format(meta.namespace, meta.name, subresource or "")
end


--- A token of the pod's service account, which dies with the pod. @return string|nil token, or nil and why not
function M:make_token(pod, audience, seconds)
  local account = pod.spec.serviceAccountName or "default"
  local path = ("/api/v1/namespaces/%s/serviceaccounts/%s/token"):format(pod.metadata.namespace, account)
  local code, answer = self:call("POST", path, {
    apiVersion = "authentication.k8s.io/v1",
    kind = "TokenRequest",
    spec = {
      audiences = host.json.array { audience ~= "" and audience or nil },
      expirationSeconds = seconds,
      boundObjectRef = { apiVersion = "v1", kind = "Pod", name = pod.metadata.name, uid = pod.metadata.uid },
    },
  })
  if code >= 300 then
    return nil, answer and answer.message or ("the server answered %d"):format(code)
  end
  return answer.status.token
end


--- Finds out what network pods have, unless that is known.
function M:ensure_network()
  local find = self.find_network
  if find then
    self.find_network = nil
    self.network = find()
  end
end


--- The address of a pod: its own, or that of the machine. @param known string? the one that its status says
function M:pod_address(pod, known)
  if self.network and not pod.spec.hostNetwork then
    return self.network:address(pod, known)
  elseif self.is_real then
    return self.address
  elseif known then
    return known
  end
  self.address_count = self.address_count + 1
  return ("10.244.%d.%d"):format(self.address_count // 254 % 256, self.address_count % 254 + 1)
end


--- Connects to a port of a pod that runs, on its loopback. @param options table as tcp.connect takes it, with port
--- @return userdata|nil connection, or nil and why not
function M:dial(pod, options)
  options.address = LOOPBACK
  if self.network and not pod.spec.hostNetwork then
    local why
    options.pod, why = self.network:enter(pod)
    if why then
      return nil, why
    end
  end
  return require("cluster.tcp").connect(options)
end


--- An Event on a pod.
function M:event(pod, type, reason, message, component)
  local about = { apiVersion = "v1", kind = "Pod", metadata = pod.metadata }
  self:call("POST", ("/api/v1/namespaces/%s/events"):format(pod.metadata.namespace),
    event_body.new(about, type, reason, message, component or "kubelet", NODE))
end


--- Writes pod.status where it differs. The pod may be gone or another one by now: its uid is sent along.
function M:write_status(pod, status)
  if host.json.equal(pod.status, status) then
    return
  end
  self:call("PATCH", path_of(pod, "/status"), {
    metadata = { uid = pod.metadata.uid },
    status = status,
  }, "application/merge-patch+json")
end


--- Ends the deletion of a pod whose containers have ended.
function M:remove(pod)
  self:call("DELETE", path_of(pod), {
    apiVersion = "v1",
    kind = "DeleteOptions",
    gracePeriodSeconds = 0,
    preconditions = { uid = pod.metadata.uid },
  })
end


-- True if the pod's status already has this message.
local function is_told(pod, why)
  for _, condition in ipairs((pod.status or {}).conditions or {}) do
    if condition.type == "PodScheduled" then
      return condition.message == why
    end
  end
  return false
end


-- The node takes any pod that fits it; one that does not is looked at again when it, or a claim, changes.
function M:schedule(pod)
  local why = scheduler_filters.problem(self, pod)
  if why and is_told(pod, why) then
    return
  elseif why then
    self:write_status(pod, {
      phase = "Pending",
      conditions = host.json.array { {
        type = "PodScheduled",
        observedGeneration = pod.metadata.generation,
        status = "False",
        reason = "Unschedulable",
        message = why,
        lastTransitionTime = host.timestamp(),
      } },
    })
    self:event(pod, "Warning", "FailedScheduling", why, SCHEDULER)
    return
  end
  local code = self:call("POST", path_of(pod, "/binding"), {
    apiVersion = "v1",
    kind = "Binding",
    metadata = { name = pod.metadata.name, uid = pod.metadata.uid },
    target = { apiVersion = "v1", kind = "Node", name = NODE },
  })
  if code < 300 then
    self:event(pod, "Normal", "Scheduled", ("Successfully assigned %s/%s to %s"):format(
      pod.metadata.namespace, pod.metadata.name, NODE), SCHEDULER)
  end
end


-- A pod that names the node itself is not scheduled, and has no other node to wait for.
local function reject(self, pod, reason, message)
  self:write_status(pod, {
    observedGeneration = pod.metadata.generation,
    phase = "Failed", reason = reason, message = "Pod was rejected: " .. message,
  })
  self:event(pod, "Warning", reason, message)
end


-- Why the kubelet does not run a pod that has the node: a reason and a message, or nil.
-- Rules: kubernetes/pkg/kubelet/lifecycle/predicate.go.
local function refusal(self, pod)
  local why = self.pod_capacity:problem()
  if pod.spec.os and pod.spec.os.name ~= OS then
    return "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
  elseif why then
    return "OutOfpods", why
  elseif scheduler_filters.has_port_conflict(self, pod) then
    local plugin = scheduler_filters.PORTS
    return plugin, ("Predicate %s failed: %s"):format(plugin, scheduler_filters.NO_PORTS)
  end
  why = sysctls.problem(pod)
  if why then
    return "SysctlForbidden", why
  end
end


-- Nobody here gives a node to a pod that waits at a gate, or for another scheduler.
local function is_left_to_others(pod)
  return next(pod.spec.schedulingGates or {}) ~= nil or not pod.spec.nodeName and pod.spec.schedulerName ~= SCHEDULER
end


local function is_finished(pod)
  local phase = pod.status and pod.status.phase
  return phase == "Succeeded" or phase == "Failed"
end


-- Gives up what only a pod that runs has.
function M:leave(pod)
  self.volume_updates:leave(pod.metadata.uid)
  if self.network then
    self.network:leave(pod)
  end
end


-- Reads the pod as it is now, and does what its change asks for.
function M:sync_pod(namespace, name)
  if self.is_down then
    return
  end
  local code, pod = self:call("GET", ("/api/v1/namespaces/%s/pods/%s"):format(namespace, name))
  if code ~= 200 then
    return
  end
  self:ensure_network()
  local at_work = self.workers[pod.metadata.uid]
  if at_work then
    at_work:update(pod)
    self.volume_updates:update(at_work.pod)
    if is_finished(pod) and at_work:running() == 0 then
      self:leave(pod)
    end
  elseif pod.metadata.deletionTimestamp then
    self:remove(pod)
  elseif is_finished(pod) or is_left_to_others(pod) then
    return
  elseif not pod.spec.nodeName then
    self:schedule(pod)
  elseif pod.spec.nodeName == NODE then
    local reason, message = refusal(self, pod)
    if reason then
      return reject(self, pod, reason, message)
    end
    at_work = pod_worker.new(self, pod)
    self.workers[pod.metadata.uid] = at_work
    at_work:queue_write()
    self.volume_updates:follow(at_work.pod, function()
      at_work:sync()
    end)
  end
end


function M:on_delete(entry)
  local at_work = self.workers[entry.uid]
  if at_work then
    self.workers[entry.uid] = nil
    self.volume_updates:leave(entry.uid)
    at_work:close()
    if self.network then
      self.network:forget(at_work.pod)
    end
  end
end


-- A claim, or the node, may be what pods wait for. Others are served meanwhile.
-- @param namespace string? nil: all of them
local function look_at_waiting(self, namespace)
  local waiting = {}
  self.server.store:collection("pods"):each(namespace, nil, function(entry)
    if (entry.fields["spec.nodeName"] or "") == "" then
      waiting[#waiting + 1] = entry
    end
  end)
  for _, entry in ipairs(waiting) do
    if self.pod_capacity:is_full() then
      return
    end
    self:sync_pod(entry.namespace, entry.name)
    host.give_way()
  end
end


local ENDED = { Succeeded = true, Failed = true }

-- True if a pod that has ended, or was deleted, had ports of the node that other pods may wait for.
local function frees_ports(event)
  return event.id == "pods" and (event.type == "DELETED" or ENDED[event.entry.fields["status.phase"]] ~= nil)
    and scheduler_filters.uses_host_ports(host.json.decode(event.entry.text))
end


-- True if a change of the node can make it fit for other pods.
local function is_other_node(entry, previous)
  local now, before = host.json.decode(entry.text), host.json.decode(previous.text)
  return not host.json.equal(now.metadata.labels, before.metadata.labels) or not host.json.equal(now.spec, before.spec)
end


local function on_change(self, event)
  local has_place = event.id == "pods" and self.pod_capacity:update(event)
  if has_place then
    host.defer(function()
      look_at_waiting(self)
    end)
  end
  if event.id == "persistentvolumeclaims"
    or event.id == "nodes" and event.previous and is_other_node(event.entry, event.previous) then
    host.defer(function()
      look_at_waiting(self, event.id ~= "nodes" and event.entry.namespace or nil)
    end)
  elseif self.is_short_of_ports and frees_ports(event) then
    self.is_short_of_ports = false
    host.defer(function()
      look_at_waiting(self)
    end)
  end
  self.volume_updates:on_change(event)
  if event.id ~= "pods" then
    return
  end
  local namespace, name = event.entry.namespace, event.entry.name
  host.defer(function()
    if event.type == "DELETED" then
      self:on_delete(event.entry)
    else
      self:sync_pod(namespace, name)
    end
  end)
end


-- One of the node's two lists of resources, with the number of pods.
local function resource_list(self, name)
  local list = {}
  for resource, amount in pairs(self.resources[name] or {}) do
    list[resource] = amount
  end
  list.pods = self.pod_capacity.most and tostring(self.pod_capacity.most)
  return next(list) and list
end


local function register_node(self)
  local hostname = NODE
  local labels = {
    ["kubernetes.io/hostname"] = hostname,
    ["kubernetes.io/os"] = OS,
    ["kubernetes.io/arch"] = self.machine.architecture,
  }
  self:call("POST", "/api/v1/nodes", {
    apiVersion = "v1", kind = "Node", metadata = { name = NODE, labels = labels },
  })
  self:call("PATCH", ("/api/v1/nodes/%s/status"):format(NODE), {
    status = {
      capacity = resource_list(self, "capacity"),
      allocatable = resource_list(self, "allocatable"),
      conditions = host.json.array { {
        type = "Ready",
        status = "True",
        reason = "KubeletReady",
        message = "moonloop runs pods",
        lastHeartbeatTime = host.timestamp(),
        lastTransitionTime = host.timestamp(),
      } },
      addresses = host.json.array {
        { type = "InternalIP", address = self.address },
        { type = "Hostname", address = hostname },
      },
      nodeInfo = {
        kubeletVersion = "moonloop",
        operatingSystem = OS,
        architecture = self.machine.architecture,
        kernelVersion = self.machine.kernel,
      },
    },
  }, "application/merge-patch+json")
end


--- Registers the node and takes on all pods, those there are and those to come.
function M:start()
  register_node(self)
  self.server.store:collection("pods"):each(nil, nil, function(entry)
    self.pod_capacity:add(entry)
  end)
  self.server.store:subscribe(function(event)
    on_change(self, event)
  end)
  local _, list = self:call("GET", "/api/v1/pods")
  for _, pod in ipairs(list and list.items or {}) do
    self:sync_pod(pod.metadata.namespace, pod.metadata.name)
  end
  self.heartbeat = self.beats and heartbeat.start(self.server, NODE, USER) or nil
end


--- Asks all containers to end, and starts no more. A container that still runs after its pod's grace period is killed.
function M:shut_down()
  self.is_down = true
  if self.heartbeat then
    self.heartbeat:stop()
  end
  for uid, at_work in pairs(self.workers) do
    self.volume_updates:leave(uid)
    at_work:shut_down()
  end
end


--- How many containers run.
function M:running()
  local count = 0
  for _, at_work in pairs(self.workers) do
    count = count + at_work:running()
  end
  return count
end


--- The handle of a container that runs: see pod_worker.lua. @param pod table  @param name string of the container
--- @return table|nil nil: it does not run
function M:container(pod, name)
  local at_work = self.workers[pod.metadata.uid]
  return at_work and at_work:handle(name)
end


--- Kills whatever runs. For the end of the process.
function M:stop()
  for uid, at_work in pairs(self.workers) do
    self.volume_updates:leave(uid)
    at_work:close()
  end
  self.workers = {}
end


return M
