-- The cluster that the specs run on, and what each of them starts from: a namespace of its own,
-- Ats, and the states they reach.
local api = require "spec.e2e.support.api"
local kubectl = require "spec.e2e.support.kubectl"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local M = {}

local folder = os.getenv "E2E_CONTROLPLANE"

--- The folder of the control plane that run.sh started; nil on a cluster of the user's.
M.controlplane = folder ~= "" and folder or nil

--- The kubeconfig file that everything here uses.
M.kubeconfig = assert(os.getenv "KUBECONFIG", "KUBECONFIG is not set: run spec/e2e/run.sh")

local random = math.random
local made = 0

--- A name that no other run has, and none twice.
function M.unique(prefix)
  made = made + 1
  return ("%s-%06x%x"):format(prefix, random(0, 0xffffff), made)
end


--- Makes a namespace of that prefix, ready to hold pods; returns its name.
function M.namespace(prefix)
  local ns = M.unique("e2e-" .. prefix)
  api.create("Namespace", nil, { metadata = { name = ns } })
  wait.till("the service account of " .. ns, 20, function()
    return api.get("ServiceAccount", ns, "default")
  end)
  return ns
end


--- Deletes it, and does not wait for that.
function M.forget(ns)
  if ns then
    api.delete("Namespace", nil, ns)
  end
end


--- The instant so many whole seconds from now, as a schedule. At most a second sooner.
function M.due_in(seconds)
  return os.date("!%Y-%m-%dT%H:%M:%SZ", os.time() + seconds)
end


--- A schedule that was due long ago.
M.PAST = "2020-01-01T00:00:00Z"

--- Creates an At.
---@param ns string
---@param name string
---@param schedule string
---@param command string? "echo YAY"
function M.at(ns, name, schedule, command)
  return api.create("At", ns, {
    metadata = { name = name },
    spec = { schedule = schedule, command = command or "echo YAY" },
  })
end


local function phase(object)
  return object and object.status and object.status.phase
end


--- Waits for an At's phase; returns the At.
function M.till_phase(ns, name, wanted, seconds)
  return wait.till(("At %s to be %s"):format(name, wanted), seconds or 20, function()
    local at = api.get("At", ns, name)
    return phase(at) == wanted and at, phase(at) or (at and "no phase") or "no At"
  end)
end


--- Waits until so many Ats of the namespace are DONE.
function M.till_done(ns, count, seconds)
  wait.till(("%d Ats to be DONE"):format(count), seconds or 60, function()
    local done = 0
    for _, at in ipairs(api.list("At", ns)) do
      done = done + (phase(at) == "DONE" and 1 or 0)
    end
    return done >= count, done
  end)
end


--- Waits for a pod; returns it.
function M.till_pod(ns, name, seconds)
  return wait.till("pod " .. name, seconds or 20, function()
    return api.get("Pod", ns, name)
  end)
end


--- Waits for an Event about the object of that kind and name; returns it.
---@param reason string "ScriptRefused"
---@param note string? a plain text that its note has in it
function M.till_event(ns, kind, name, reason, note, seconds)
  return wait.till(("Event %s about %s %s"):format(reason, kind, name), seconds or 20, function()
    local seen = {}
    for _, event in ipairs(api.list("Event", ns)) do
      local about = event.regarding or {}
      if about.kind == kind and about.name == name then
        seen[#seen + 1] = ("%s: %s"):format(event.reason, event.note)
        if event.reason == reason and (not note or event.note:find(note, 1, true)) then
          return event
        end
      end
    end
    return nil, table.concat(seen, "; ")
  end)
end


--- The condition of that type in an object's status, or nil.
function M.condition(object, condition_type)
  for _, condition in ipairs(object and object.status and object.status.conditions or {}) do
    if condition.type == condition_type then
      return condition
    end
  end
end


--- Waits for a condition in an object's status; returns it, and the object. An Event about the same failure may be
--- there before.
---@param status string "True"
---@param part string? a plain text that "REASON: MESSAGE" has in it
function M.till_condition(kind, ns, name, condition_type, status, part, seconds)
  local object
  return wait.till(("condition %s=%s of %s %s"):format(condition_type, status, kind, name), seconds or 20, function()
    object = api.get(kind, ns, name)
    local condition = M.condition(object, condition_type)
    local said = condition and ("%s: %s"):format(condition.reason, condition.message)
    if condition and condition.status == status and (not part or said:find(part, 1, true)) then
      return condition
    end
    return nil, condition and condition.status .. " " .. said or "none"
  end), object
end


--- Installs a CRD by its manifest's path and waits until its objects are served. One of that name that is being deleted
--- has to go first: it would take the applied one with it.
---@param path string
---@param name string "widgets.e2e.moonloop.dev"
function M.install(path, name)
  wait.till(name .. " to be gone or to stay", 30, function()
    return kubectl.run("get", "crd", name, "--ignore-not-found", "-o", "jsonpath={.metadata.deletionTimestamp}") == ""
  end)
  kubectl.run("apply", "-f", path)
  shell.must(shell.line { "spec/e2e/established.sh", "crd/" .. name })
end


--- Stops and starts a component of the control plane. An API server that is ready may still fill its cache of a kind,
--- and answers 429 till then.
function M.restart(component)
  shell.must(shell.line { "spec/e2e/controlplane/controlplane.sh", "restart", M.controlplane, component })
  for _, kind in ipairs { "At", "Pod", "Event" } do
    wait.till(("%ss to be served"):format(kind), 20, function()
      return pcall(api.list, kind, "default")
    end)
  end
end


--- Restarts the other components when an API server was away. Each failure made their own backoff longer: ten outages,
--- and the controller manager saw no new namespace for 80 s.
function M.restart_clients()
  M.restart "kube-controller-manager"
  M.restart "kubelet"
end


return M
