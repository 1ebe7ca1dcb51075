-- Helpers for the specs of database.lua, rediscluster.lua and tenant.lua: objects that come and go, and clients that
-- try the servers from a pod of their own, where pods are processes and the servers are installed.
local api = require "spec.e2e.support.api"
local cjson = require "cjson"
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local kubectl = require "spec.e2e.support.kubectl"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local M = {}

local PROGRAMS = [[PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :):/usr/sbin
  for program in %s; do command -v $program || exit 1; done >/dev/null 2>&1]]

--- Do pods run, with these programs in them? On the control plane nothing runs in a pod.
---@param programs string "redis-server redis-cli"
function M.runs(programs)
  return not cluster.controlplane and select(2, shell.run(PROGRAMS:format(programs))) == 0
    and not dev.no_namespaces
end


--- The control plane has no controller for Jobs: there this says that those of the namespace are done.
function M.finish_jobs(ns)
  for _, job in ipairs(cluster.controlplane and api.list("Job", ns) or {}) do
    if not job.metadata.deletionTimestamp and not (job.status or {}).succeeded then
      local path = ("/apis/batch/v1/namespaces/%s/jobs/%s/status"):format(ns, job.metadata.name)
      local done = { startTime = job.metadata.creationTimestamp, succeeded = 1 }
      api.request("PATCH", path, { status = done }, "application/merge-patch+json")
    end
  end
end


--- The control plane has no controller that protects claims either: there this lets those go that are deleted.
function M.release_claims(ns)
  for _, claim in ipairs(cluster.controlplane and api.list("PersistentVolumeClaim", ns) or {}) do
    if claim.metadata.deletionTimestamp then
      local path = ("/api/v1/namespaces/%s/persistentvolumeclaims/%s"):format(ns, claim.metadata.name)
      api.request("PATCH", path, { metadata = { finalizers = cjson.null } }, "application/merge-patch+json")
    end
  end
end


--- Makes the tier of that name for Tenants, which allows 50 pods.
function M.make_tier(name)
  wait.till("the namespace tenant-tiers", 30, function()
    local space = api.get("Namespace", nil, "tenant-tiers")
    if not space then
      api.create("Namespace", nil, { metadata = { name = "tenant-tiers" } })
    end
    return space and not space.metadata.deletionTimestamp, "another spec's is going"
  end)
  api.create("ConfigMap", "tenant-tiers", {
    metadata = { name = name }, data = { quota = "pods: 50\n", network = "- from: [{ podSelector: {} }]\n" },
  })
end


--- Is the condition Ready of an object True, and does it tell of its present spec? Returns the object; or false, and
--- what the condition says.
function M.is_ready(kind, ns, name)
  if kind == "Database" then
    M.finish_jobs(ns)
  end
  local object = api.get(kind, ns, name)
  local ready = cluster.condition(object, "Ready")
  local is = ready and ready.status == "True" and ready.observedGeneration == object.metadata.generation
  return is and object, ready and ready.message
end


--- Waits until an object is ready; returns it.
function M.till_ready(kind, ns, name, seconds)
  return wait.till(("%s %s to be ready"):format(kind, name), seconds or 30, function()
    return M.is_ready(kind, ns, name)
  end)
end


--- Waits until there is no such object.
function M.till_gone(kind, ns, name, seconds)
  wait.till(("%s %s to go"):format(kind, name), seconds or 30, function()
    return not api.get(kind, ns, name), "still there"
  end)
end


--- Runs a shell script in a pod of its own, with a Secret's values in /secrets; returns whether it succeeded, and what
--- it printed.
function M.client(ns, secret, script)
  local name = cluster.unique "client"
  api.create("Pod", ns, {
    metadata = { name = name },
    spec = {
      restartPolicy = "Never",
      containers = {
        {
          name = "client", image = "client", command = { "sh", "-ec", script },
          volumeMounts = secret and { { name = "secrets", mountPath = "/secrets" } } or nil,
        },
      },
      volumes = secret and { { name = "secrets", secret = { secretName = secret } } } or nil,
    },
  })
  local phase = wait.till("the client to end", 20, function()
    local is = api.get("Pod", ns, name).status.phase
    return (is == "Succeeded" or is == "Failed") and is, is
  end)
  return phase == "Succeeded", kubectl.run("logs", "-n", ns, name)
end


return M
