local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local RedisCluster = moonloop.kind("cache.example.com/v1", "RedisCluster")
local Older = moonloop.kind("cache.example.com/v1alpha1", "RedisCluster")
local Pod = moonloop.kind("v1", "Pod")
local Service = moonloop.kind("v1", "Service")
local StatefulSet = moonloop.kind("apps/v1", "StatefulSet")

local function cluster(size, name)
  return {
    apiVersion = RedisCluster.apiVersion, kind = RedisCluster.kind, metadata = { name = name or "c" },
    spec = { size = size },
  }
end


describe("rediscluster", function()
  local world

  before_each(function()
    world = testing.world()
  end)

  local function pods()
    local names = {}
    for index, pod in ipairs(world.list(Pod)) do
      names[index] = pod.metadata.name
    end
    return names
  end

  local function condition(name)
    local conditions = world.get(RedisCluster, name or "c").status.conditions
    for _, each in ipairs(conditions or {}) do
      if each.type == "Ready" then
        return each
      end
    end
  end

  -- The servers of the cluster, and what its status says of them.
  local function assert_nodes(...)
    world.advance "10s"
    local wanted = { ... }
    assert.same(wanted, pods())
    world.expect(RedisCluster, "c", { status = {
      nodes = wanted, replicas = #wanted, readyReplicas = #wanted, selector = "cache.example.com/rediscluster=c",
    } })
    assert.equal("True", condition().status)
  end

  local function reasons()
    world.advance "1s"
    local list = {}
    for index, event in ipairs(world.events(RedisCluster, "c")) do
      list[index] = event.reason .. ": " .. event.note
    end
    return list
  end

  it("runs as many servers as it is told, by names", function()
    world.apply(cluster(3))
    assert_nodes("c-0", "c-1", "c-2")
    world.expect(Service, "c", {
      metadata = { labels = { ["control-plane"] = "redis-operator" } },
      spec = { clusterIP = "None", selector = { ["cache.example.com/rediscluster"] = "c" } },
    })
    world.expect(StatefulSet, "c", {
      metadata = {
        labels = { ["control-plane"] = "redis-operator" },
        ownerReferences = { { kind = "RedisCluster", name = "c", controller = true } },
      },
      spec = { serviceName = "c", replicas = 3 },
    })
    assert.same({ "Scaled: 3 of 3 servers are ready" }, reasons())
  end)

  it("grows and shrinks, the last servers first", function()
    world.apply(cluster(3))
    local first = world.get(Pod, "c-0").metadata.uid
    world.patch(RedisCluster, "c", { spec = { size = 5 } })
    assert_nodes("c-0", "c-1", "c-2", "c-3", "c-4")
    world.patch(RedisCluster, "c", { spec = { size = 2 } })
    assert_nodes("c-0", "c-1")
    assert.equal(first, world.get(Pod, "c-0").metadata.uid)
    assert.same({
      "Scaled: 3 of 3 servers are ready", "Scaling: from 3 to 5 servers", "Scaled: 5 of 5 servers are ready",
      "Scaling: from 5 to 2 servers", "Scaled: 2 of 2 servers are ready",
    }, reasons())
  end)

  it("can be told by kubectl scale", function()
    world.apply(cluster(3))
    world.patch(RedisCluster, "c", { spec = { replicas = 1 } }, "scale")
    assert_nodes "c-0"
    world.patch(RedisCluster, "c", { spec = { replicas = 0 } }, "scale")
    assert_nodes()
  end)

  it("says so while a server is down", function()
    world.apply(cluster(2))
    assert_nodes("c-0", "c-1")
    world.finish_pod("c-1", 1)
    world.finish_pod("c-1", 1)
    world.expect(RedisCluster, "c", { status = { nodes = { "c-0" }, replicas = 2, readyReplicas = 1 } })
    assert.same({ "False", "1 of 2 servers are ready" }, { condition().status, condition().message })
    world.advance "1m"
    assert_nodes("c-0", "c-1")
  end)

  it("puts right what others change", function()
    world.apply(cluster(2))
    world.patch(StatefulSet, "c", { spec = { replicas = 4 } })
    assert_nodes("c-0", "c-1")
    world.delete(Service, "c")
    assert.truthy(world.get(Service, "c"))
  end)

  it("keeps clusters apart, and takes its parts along", function()
    world.apply { cluster(1), cluster(2, "d") }
    world.advance "10s"
    world.delete(RedisCluster, "d")
    world.advance "1m"
    assert_nodes "c-0"
    assert.is_nil(world.get(StatefulSet, "d"))
    assert.is_nil(world.get(Service, "d"))
  end)

  it("is the same in its older version", function()
    world.apply(cluster(2))
    assert_nodes("c-0", "c-1")
    world.expect(Older, "c", { spec = { replicas = 2 }, status = { nodes = { "c-0", "c-1" } } })
    world.apply {
      apiVersion = Older.apiVersion, kind = Older.kind, metadata = { name = "c" }, spec = { replicas = 3 },
    }
    world.expect(RedisCluster, "c", { spec = { size = 3 } })
    assert_nodes("c-0", "c-1", "c-2")
    world.patch(Older, "c", { spec = { replicas = 1 } }, "scale")
    assert_nodes "c-0"
  end)

  it("loses nothing on the way to its older version and back", function()
    world.round_trip(cluster(2))
    world.apply(cluster(2))
    assert_nodes("c-0", "c-1")
    world.round_trip(world.get(RedisCluster, "c"))
  end)

  it("cannot have a negative size", function()
    local ok, message = pcall(world.apply, cluster(-1))
    assert.is_false(ok)
    assert.matches("spec.size in body should be greater than or equal to 0", message, 1, true)
  end)
end)
