--- The Lua parts of `moonloop dev` besides the embedded API server, in the same state: controllers, the node that runs
--- pods, the manifests of --apply, and the report for the terminal.
---
--- The C side (cluster/host/dev.c) calls these with JSON.
local apply = require "cluster.dev.apply"
local audit_log = require "cluster.dev.audit_log"
local later = require "cluster.later"
local persistentvolume_folders = later.module "cluster.controllers.persistentvolume_folders"
local controllers = require "cluster.controllers"
local event_printer = require "cluster.dev.event_printer"
local host = require "cluster.host"
local kubelet = later.module "cluster.kubelet"
local logs = later.module "cluster.kubelet.logs"
local node_resources = later.module "cluster.kubelet.node_resources"
local register = require "cluster.register"
local script_writes = require "cluster.dev.script_writes"
local server = require "cluster.apiserver.running"

local M = {}

local NETWORK_SECONDS = 0.1 -- after the start; then there is one, also without pods

local node


-- The network of pods' own, or nil when they are in the machine's: only containers can have one.
local function network_of(settings, runtime)
  if runtime:why_no_containers() then
    return nil
  end
  local network = require("cluster.apiserver.network").new(server, {
    api = settings.network,
    node = node.address,
    complain = function(pod, message)
      node:event(pod, "Warning", "HostPortConflict", message)
    end,
  })
  network:start()
  runtime:use_network(network)
  return network
end


-- The options of the kubelet.
local function kubelet_options(settings, folders)
  if settings.pods == "fake" then
    return { runtime = require("cluster.kubelet.fake_runtime").new(), beats = true, max_pods = settings.max_pods }
  end
  local process = require "cluster.process"
  local container_logs = logs.new(settings.directory, event_printer.container_line)
  local runtime = require("cluster.kubelet.process_runtime").new {
    directory = settings.directory, logs = container_logs, images = settings.images, folders = folders,
  }
  return {
    runtime = runtime,
    find_network = settings.network and function()
      return network_of(settings, runtime)
    end,
    logs = container_logs,
    beats = true,
    max_pods = settings.max_pods,
    machine = process.machine(),
    resources = node_resources.of(node_resources.read_file, process.open_folder(settings.directory):capacity()),
  }
end


-- Where volumes of claims are: with the state, when that is kept.
local function volumes_of(settings)
  if settings.pods ~= "process" then
    return nil
  end
  return persistentvolume_folders.open((server.settings.data or settings.directory) .. "/volumes")
end


-- The Service by which pods find the API server. Every cluster has it.
-- Rules: kubernetes/pkg/controlplane/controller/kubernetesservice/controller.go.
local function ensure_own_service()
  server:call("POST", "/api/v1/namespaces/default/services", {
    metadata = { name = "kubernetes", labels = { component = "apiserver", provider = "kubernetes" } },
    spec = {
      clusterIP = "10.0.0.1",
      ports = host.json.array { { name = "https", port = 443, protocol = "TCP", targetPort = 6443 } },
    },
  }, { user_agent = "kube-apiserver" })
end


--- @param settings table { pods = "process" | "fake" | "none", max_pods = how many the node takes,
---   directory = an existing folder of its own, ca = PEM,
---   images = what containers run, see kubelet/images.lua, logs = see event_printer.start, audit_log = a file, or nil,
---   network = { address =, port = } of the API server when pods have one of their own }
function M.start(settings)
  server:publish_authority(settings.ca)
  if settings.audit_log then
    audit_log.start(server, settings.audit_log)
  end
  event_printer.start(server, settings.logs)
  script_writes.start(server)
  apply.start(server)
  register.on_registered = function(kinds)
    apply.kinds_registered(server, kinds)
  end
  ensure_own_service()
  server.auth:show_roles()
  local folders = volumes_of(settings)
  if server.settings.controllers == false then
    controllers.start_of_server(server)
  else
    controllers.start(server, folders)
  end
  if settings.pods ~= "none" then
    node = kubelet.new(server, kubelet_options(settings, folders))
    node:start()
    host.after(NETWORK_SECONDS, function()
      node:ensure_network()
    end)
  end
end


--- Applies what is new or has changed in the manifests of one --apply.
--- @param manifests table { path =, files = { { name =, text = }, … } }
function M.apply(manifests)
  apply.files(server, manifests.path, manifests.files)
end


--- Scripts of these kinds have webhooks, which are going to be there.
function M.expect_webhooks(kinds)
  apply.expect(server, kinds)
end


--- How many manifests are not applied because something is wrong with them.
M.failed = apply.failed


--- Returns true if pods still have to start or to end, or something is still to be applied.
function M.is_busy()
  local is_busy = apply.is_busy()
  server.store:collection("pods"):each(nil, nil, function(entry)
    local phase = entry.fields["status.phase"]
    local runs_to_an_end = phase == "Running" and entry.fields["spec.restartPolicy"] ~= "Always"
    is_busy = is_busy or node ~= nil and (entry.deleting or phase == "Pending" or runs_to_an_end)
    return not is_busy
  end)
  return is_busy
end


--- Asks the pods to end, each within its grace period. @return integer how many containers run
function M.shut_down()
  if not node then
    return 0
  end
  node:shut_down()
  return node:running()
end


--- How many containers still run.
function M.running()
  return node and node:running() or 0
end


--- Kills what runs, writes out what is kept, and tells what the scripts did.
function M.stop()
  if node then
    node:stop()
  end
  script_writes.tell(event_printer.print_line)
  server:close()
end


return M
