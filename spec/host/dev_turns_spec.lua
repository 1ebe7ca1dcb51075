-- moonloop dev answers while its controllers have much to do, and ends when it is asked to.
local dev = require "spec.host.support.dev"
local wait = require "spec.e2e.support.wait"

local MANY, ALL = 20000, 2147483647 -- ALL: the largest number of replicas that can be said
local PODS = "/api/v1/namespaces/default/pods"
local LABELS = { app = "many" }
local TEMPLATE = {
  metadata = { labels = LABELS },
  spec = { restartPolicy = "Always", containers = { { name = "c", image = "busybox", command = { "sleep", "9" } } } },
}


local function workload(kind, replicas)
  local spec = { replicas = replicas, selector = { matchLabels = LABELS }, template = TEMPLATE }
  if kind == "StatefulSet" then
    spec.podManagementPolicy, spec.serviceName = "Parallel", "s"
  end
  return "/apis/apps/v1/namespaces/default/" .. kind:lower() .. "s", { metadata = { name = "many" }, spec = spec }
end


local function job(parallelism)
  local pod = {
    metadata = TEMPLATE.metadata, spec = { restartPolicy = "Never", containers = TEMPLATE.spec.containers },
  }
  return "/apis/batch/v1/namespaces/default/jobs",
    { metadata = { name = "many" }, spec = { parallelism = parallelism, template = pod } }
end


describe("moonloop dev", function()
  local server
  after_each(dev.stop_all)

  local function count(path)
    local list = server:must("GET", path .. "?limit=1")
    return #list.items + math.tointeger(list.metadata.remainingItemCount or 0)
  end

  -- It has begun with the pods, and answers in the middle of them.
  local function answers_meanwhile()
    wait.till("the first pods", 60, function() return count(PODS) > 0 end)
    for _ = 1, 5 do
      assert.equal(200, (server:ask("GET", "/readyz")))
    end
    assert.is_true(count(PODS) < MANY / 4, count(PODS))
  end

  for what, made in pairs {
    ["a Deployment"] = { workload("Deployment", MANY) },
    ["a Deployment without end"] = { workload("Deployment", ALL) },
    ["a StatefulSet without end"] = { workload("StatefulSet", ALL) },
    ["a Job without end"] = { job(ALL) },
  } do
    it("answers while it makes the pods of " .. what .. ", and ends by a signal", function()
      server = dev.start { "--pods", "fake" }
      server:must("POST", "/api/v1/namespaces/default/services",
        { metadata = { name = "s" }, spec = { selector = LABELS, ports = { { port = 80 } } } })
      server:must("POST", made[1], made[2])
      answers_meanwhile()
      assert.equal(0, server:stop())
    end)
  end

  it("answers while it deletes a namespace with many objects", function()
    server = dev.start { "--pods", "none" }
    local path = "/api/v1/namespaces/many/configmaps"
    server:must("POST", "/api/v1/namespaces", { metadata = { name = "many" } })
    server:must("POST", "/apis/apps/v1/namespaces/many/replicasets", select(2, workload("ReplicaSet", 600)))
    wait.till("the pods", 200, function() return count "/api/v1/namespaces/many/pods" == 600 end)
    server:must("DELETE", "/api/v1/namespaces/many")
    wait.till("the first to go", 60, function() return count "/api/v1/namespaces/many/pods" < 600 end)
    assert.equal(200, (server:ask("GET", "/readyz")))
    assert.is_true(count "/api/v1/namespaces/many/pods" > 0)
    wait.till("the rest to go", 200, function() return not server:get "/api/v1/namespaces/many" end)
    assert.equal(0, count(path))
    assert.equal(0, server:stop())
  end)
end)
