-- Deployments with the other controllers and pods that run nothing: roll-outs in frozen time.
local controllers = require "cluster.controllers"
local fake_runtime = require "cluster.kubelet.fake_runtime"
local host = require "cluster.host"
local kubelet = require "cluster.kubelet"
local testserver = require "testserver"

local DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
local SETS = "/apis/apps/v1/namespaces/default/replicasets"
local PODS = "/api/v1/namespaces/default/pods"


local function deployment(changes)
  local object = {
    metadata = { name = "web" },
    spec = {
      replicas = 4,
      selector = { matchLabels = { app = "web" } },
      template = {
        metadata = { labels = { app = "web" } },
        spec = { containers = { { name = "c", image = "busybox:1" } } },
      },
    },
  }
  for key, value in pairs(changes or {}) do
    object.spec[key] = value
  end
  return object
end


local function image(name)
  return { spec = { template = { spec = { containers = { { name = "c", image = name } } } } } }
end


-- Pods there are, and those of them that are ready and stay.
local function pods_of(cluster)
  local present, ready = 0, 0
  for _, pod in ipairs(cluster:must("GET", PODS).items) do
    if not pod.metadata.deletionTimestamp then
      present = present + 1
      for _, condition in ipairs((pod.status or {}).conditions or {}) do
        ready = ready + (condition.type == "Ready" and condition.status == "True" and 1 or 0)
      end
    end
  end
  return present, ready
end


-- The most replicas that all ReplicaSets together are asked for.
local function asked_for(cluster)
  local total = 0
  for _, set in ipairs(cluster:must("GET", SETS).items) do
    total = total + set.spec.replicas
  end
  return total
end


-- The most replicas asked for and the fewest ready pods while `act` and what follows from it happen, at each change.
-- maxSurge bounds what is asked for, as upstream: each ReplicaSet follows in its own time.
local function extremes(cluster, act)
  local most, fewest = 0, math.huge
  local is_watched = true
  cluster.server.store:subscribe(function(event)
    if is_watched and (event.id == "pods" or event.id == "replicasets.apps") then
      local _, ready = pods_of(cluster)
      most, fewest = math.max(most, asked_for(cluster)), math.min(fewest, ready)
    end
  end)
  act()
  for _ = 1, 60 do
    cluster:pass(1)
  end
  is_watched = false
  return most, fewest
end


describe("A Deployment", function()
  local cluster

  before_each(function()
    cluster = testserver.new()
    controllers.start(cluster.server)
    kubelet.new(cluster.server, { runtime = fake_runtime.new(function() end) }):start()
    cluster.settle()
  end)

  local function make(changes)
    cluster:must("POST", DEPLOYMENTS, deployment(changes))
    cluster:pass(5)
  end

  local function change(patch)
    assert.equal(200, (cluster:patch("strategic", DEPLOYMENTS .. "/web", patch)))
  end

  local function read()
    return cluster:must("GET", DEPLOYMENTS .. "/web")
  end

  it("makes its pods, and follows spec.replicas up and down", function()
    make()
    assert.equal(4, read().status.availableReplicas)
    for _, replicas in ipairs { 6, 1, 0 } do
      change { spec = { replicas = replicas } }
      cluster:pass(5)
      assert.same({ replicas, replicas }, { pods_of(cluster) })
    end
  end)

  it("makes a ReplicaSet with its replicas: a reader never sees a set of 0 that is scaled next", function()
    local born = {}
    cluster.server.store:subscribe(function(event)
      if event.type == "ADDED" and event.id == "replicasets.apps" then
        born[#born + 1] = cluster:must("GET", SETS .. "/" .. event.entry.name).spec.replicas
      end
    end)
    make { strategy = { rollingUpdate = { maxSurge = 1, maxUnavailable = 0 } } }
    change(image "busybox:2")
    cluster:pass(20)
    change { spec = { strategy = { type = "Recreate", rollingUpdate = host.json.null } } }
    change(image "busybox:3")
    cluster:pass(20)
    assert.same({ 4, 1, 4 }, born)
  end)

  it("tells of each change of scale", function()
    make()
    change { spec = { replicas = 2 } }
    cluster:pass(5)
    local told = {}
    for _, event in ipairs(cluster:must("GET", "/api/v1/namespaces/default/events").items) do
      if event.reason == "ScalingReplicaSet" then
        told[#told + 1] = event.message:match "from %d to %d$"
      end
    end
    table.sort(told)
    assert.same({ "from 0 to 4", "from 4 to 2" }, told)
  end)

  it("makes another pod for one that loses its labels, which is nobody's then", function()
    make { replicas = 1 }
    local name = cluster:must("GET", PODS).items[1].metadata.name
    cluster:patch("merge", PODS .. "/" .. name, { metadata = { labels = { app = "aside" } } })
    cluster:pass(5)
    assert.same({ 2, 2 }, { pods_of(cluster) })
    assert.is_nil(cluster:must("GET", PODS .. "/" .. name).metadata.ownerReferences)
    assert.equal(1, read().status.replicas)
  end)

  local LIMITS = {
    { surge = 1, unavailable = 0, most = 5, fewest = 4 },
    { surge = 0, unavailable = 1, most = 4, fewest = 3 },
    { surge = "25%", unavailable = "25%", most = 5, fewest = 3 },
    { surge = "100%", unavailable = 0, most = 8, fewest = 4 },
  }
  for _, case in ipairs(LIMITS) do
    it(("never exceeds maxSurge %s and maxUnavailable %s"):format(case.surge, case.unavailable), function()
      make { strategy = { rollingUpdate = { maxSurge = case.surge, maxUnavailable = case.unavailable } } }
      local most, fewest = extremes(cluster, function() change(image "busybox:2") end)
      assert.is_true(most <= case.most, most)
      assert.is_true(fewest >= case.fewest, fewest)
      assert.equal(4, read().status.updatedReplicas)
      assert.equal(4, read().status.replicas)
    end)
  end

  it("has no pods of two templates under Recreate", function()
    make { strategy = { type = "Recreate" } }
    local most, fewest = extremes(cluster, function() change(image "busybox:2") end)
    assert.same({ 4, 0 }, { most, fewest })
    assert.equal(4, read().status.updatedReplicas)
  end)

  it("rolls nothing out while it is paused, and scales all the same", function()
    make { paused = false }
    change { spec = { paused = true } }
    change(image "busybox:2")
    change { spec = { replicas = 2 } }
    cluster:pass(5)
    assert.equal(1, #cluster:must("GET", SETS).items)
    assert.same({ 2, 2 }, { pods_of(cluster) })
    change { spec = { paused = false } }
    cluster:pass(30)
    assert.equal(2, read().status.updatedReplicas)
  end)

  it("scales the ReplicaSets of a roll-out that is stuck in proportion", function()
    local function sizes()
      local found = {}
      for _, set in ipairs(cluster:must("GET", SETS).items) do
        found[set.spec.template.spec.containers[1].image] = set.spec.replicas
      end
      return { found["busybox:1"], found["busybox:2"] }
    end
    make { replicas = 10, strategy = { type = "RollingUpdate", rollingUpdate = { maxSurge = 3, maxUnavailable = 2 } } }
    local stuck = image "busybox:2"
    stuck.spec.template.spec.nodeSelector = { nowhere = "yes" }
    change(stuck)
    cluster:pass(5)
    assert.same({ 8, 5 }, sizes())
    change { spec = { replicas = 30 } }
    cluster:pass(5)
    assert.same({ 20, 13 }, sizes())
    change { spec = { replicas = 31 } }
    cluster:pass(5)
    assert.same({ 21, 13 }, sizes())
    change { spec = { replicas = 5 } }
    cluster:pass(5)
    assert.same({ 3, 5 }, sizes())
    change { spec = { replicas = 0 } }
    cluster:pass(5)
    assert.same({ 0, 0 }, sizes())
  end)

  it("takes up an old ReplicaSet again, with a new revision", function()
    make()
    local first = cluster:must("GET", SETS).items[1].metadata.name
    change(image "busybox:2")
    cluster:pass(30)
    change(image "busybox:1")
    cluster:pass(30)
    local set = cluster:must("GET", SETS .. "/" .. first)
    assert.equal(4, set.spec.replicas)
    assert.equal("3", set.metadata.annotations["deployment.kubernetes.io/revision"])
    assert.equal(2, #cluster:must("GET", SETS).items)
  end)

  it("keeps as many old ReplicaSets as revisionHistoryLimit says", function()
    make { revisionHistoryLimit = 1 }
    for n = 2, 4 do
      change(image("busybox:" .. n))
      cluster:pass(30)
    end
    assert.equal(2, #cluster:must("GET", SETS).items)
  end)

  it("deletes the oldest of old ReplicaSets whose revisions somebody made equal", function()
    make()
    local names = {}
    for n = 2, 8 do
      for _, set in ipairs(cluster:must("GET", SETS).items) do
        names[n - 1] = set.spec.replicas > 0 and set.metadata.name or names[n - 1]
      end
      change(image("busybox:" .. n))
      cluster:pass(30)
    end
    for _, name in ipairs(names) do
      cluster:patch("merge", SETS .. "/" .. name, { metadata = { annotations = {
        ["deployment.kubernetes.io/revision"] = "1",
      } } })
    end
    change { spec = { revisionHistoryLimit = 3 } }
    cluster:pass(30)
    for i, name in ipairs(names) do
      assert.equal(i > 4 and 200 or 404, (cluster:call("GET", SETS .. "/" .. name)), name)
    end
  end)

  it("makes no pods while it is deleted with them", function()
    make { replicas = 2 }
    local name = cluster:must("GET", PODS).items[1].metadata.name
    cluster:patch("merge", PODS .. "/" .. name, { metadata = { finalizers = { "example.com/kept" } } })
    cluster:must("DELETE", DEPLOYMENTS .. "/web?propagationPolicy=Foreground")
    cluster:pass(5)
    assert.equal(200, (cluster:call("GET", DEPLOYMENTS .. "/web")))
    local left = cluster:must("GET", PODS).items
    assert.equal(1, #left)
    assert.equal(name, left[1].metadata.name)
  end)

  for _, policy in ipairs { "Background", "Foreground" } do
    it("takes its ReplicaSets and their pods along when it is deleted: " .. policy, function()
      make()
      cluster:must("DELETE", DEPLOYMENTS .. "/web?propagationPolicy=" .. policy)
      cluster:pass(60)
      assert.equal(404, (cluster:call("GET", DEPLOYMENTS .. "/web")))
      assert.equal(0, #cluster:must("GET", SETS).items)
      assert.equal(0, #cluster:must("GET", PODS).items)
    end)
  end
end)
