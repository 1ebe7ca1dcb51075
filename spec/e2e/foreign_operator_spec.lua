-- An operator that we did not write, on another framework: dask-kubernetes on Kopf, as it is published. It keeps a
-- cluster of workers, each a Deployment of its own, and runs jobs on it. The workers here only sleep.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local wait = require "spec.e2e.support.wait"

local NONE = 0

-- A pod's spec. The scheduler's Service asks for the names of ports.
local function pod(name, command, ports)
  return { containers = { { name = name, image = "work", command = command, ports = ports } } }
end


-- Returns the spec of a DaskCluster.
local function workers(name, count)
  return {
    worker = { replicas = count, spec = pod("worker", { "sleep", "600" }) },
    scheduler = {
      spec = pod("scheduler", { "sleep", "600" }, {
        { name = "tcp-comm", containerPort = 8786 },
        { name = "http-dashboard", containerPort = 8787 },
      }),
      service = {
        type = "ClusterIP",
        selector = { ["dask.org/cluster-name"] = name, ["dask.org/component"] = "scheduler" },
        ports = {
          { name = "tcp-comm", port = 8786, targetPort = "tcp-comm" },
          { name = "http-dashboard", port = 8787, targetPort = "http-dashboard" },
        },
      },
    },
  }
end


describe("An operator on Kopf", function()
  local ns

  setup(function()
    ns = cluster.namespace "kopf"
    local operator = host.spawn({ "kopf", ns }, { binary = "spec/e2e/clients/run.sh", name = "kopf" })
    operator:till_log({ msg = "Initial authentication has finished" }, 90)
    for _, kind in ipairs { "DaskJob", "DaskCluster", "DaskWorkerGroup" } do
      wait.till(("%ss to be served"):format(kind), 20, function()
        return pcall(api.list, kind, ns)
      end)
    end
    if cluster.controlplane then -- garbage collection looks for new kinds every 30 s, and when it starts
      cluster.restart "kube-controller-manager"
    end
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function till_count(kind, wanted, query)
    wait.till(("%d %ss"):format(wanted, kind), 30, function()
      local count = #api.list(kind, ns, query)
      return count == wanted, count
    end)
  end

  local function till_phase(kind, name, field, wanted)
    return wait.till(("%s %s to be %s"):format(kind, name, wanted), 30, function()
      local object = api.get(kind, ns, name)
      local is = object and object.status and object.status[field]
      return is == wanted and object, is
    end)
  end

  -- dask-kubernetes writes Running when the scheduler's Service has a status, and Pending when the handler that makes
  -- the Service ends. On a busy machine the second may come last: another status of the Service tells it again.
  local function till_running(name)
    local path, told, count = ("/api/v1/namespaces/%s/services/%s-scheduler/status"):format(ns, name), wait.now(), 0
    return wait.till(("DaskCluster %s to be Running"):format(name), 30, function()
      local status = api.get("DaskCluster", ns, name).status
      local phase = status and status.phase
      if phase == "Pending" and wait.now() - told >= 2 then
        told, count = wait.now(), count + 1
        local condition = {
          type = "Told", status = "True", reason = "Again", message = tostring(count),
          lastTransitionTime = "2026-01-01T00:00:00Z",
        }
        api.request("PATCH", path, { status = { conditions = { condition } } }, "application/merge-patch+json")
      end
      return phase == "Running" and api.get("DaskCluster", ns, name), phase
    end)
  end

  it("makes a cluster of workers, adds some, and its parts go with it", function()
    api.create("DaskCluster", ns, { metadata = { name = "few" }, spec = workers("few", 2) })
    local made = till_running "few"
    till_count("Deployment", 2, "?labelSelector=dask.org%2Fcomponent%3Dworker")
    assert.truthy(api.get("Service", ns, "few-scheduler"))
    assert.equal(made.metadata.uid, api.get("DaskWorkerGroup", ns, "few-default").metadata.ownerReferences[1].uid)

    api.patch("DaskCluster", ns, "few", { spec = { worker = { replicas = 4 } } })
    till_count("Deployment", 4, "?labelSelector=dask.org%2Fcomponent%3Dworker")

    api.delete("DaskCluster", ns, "few")
    till_count("Deployment", NONE)
    till_count("DaskWorkerGroup", NONE)
    till_count("Service", NONE)
  end)

  it("runs a job on workers of its own, and removes them afterwards", function()
    api.create("DaskJob", ns, {
      metadata = { name = "sum" },
      spec = { job = { spec = pod("job", { "true" }) }, cluster = { spec = workers("sum", 1) } },
    })
    till_phase("DaskJob", "sum", "jobStatus", "Successful")
    assert.equal("Succeeded", api.get("Pod", ns, "sum-runner").status.phase)
    till_count("DaskCluster", NONE)
    till_count("Deployment", NONE)
  end)
end)
