-- The RedisCluster of the seed documents: three servers, five, two, and none. Where Redis is installed and pods are
-- processes it is Redis that answers. And one that is written in v1alpha1, which the API server has the script convert.
local api = require "spec.e2e.support.api"
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local operators = require "spec.e2e.support.operators"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"
local webhooks = require "spec.e2e.support.webhooks"

local SCRIPT, CRD = "reconcilers/rediscluster.lua", "crds/rediscluster.yaml"
local NAME = "example-rediscluster"

local served = (operators.runs "redis-server redis-cli" or cluster.controlplane) and it or pending
local asked = operators.runs "redis-server redis-cli" and it or pending

describe("A RedisCluster", function()
  local ns

  setup(function()
    ns = cluster.namespace "redis"
    local moonloop = host.start { name = "redis", scripts = SCRIPT, namespaces = ns, args = webhooks.flags(ns) }
    moonloop:till_ready()
    kubectl.run("apply", "-f", CRD) -- however run.sh has installed it
    webhooks.register(moonloop, SCRIPT, CRD)
    webhooks.till_trusted(moonloop, "CustomResourceDefinition")
    kubectl.run("apply", "-n", ns, "-f", "crds/samples/rediscluster.yaml")
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
    kubectl.run("apply", "-f", CRD) -- calls a Service again
  end)

  local function till_nodes(...)
    local wanted = table.concat({ ... }, " ")
    operators.till_ready("RedisCluster", ns, NAME, 60)
    wait.till("the nodes " .. wanted, 30, function()
      local is = table.concat(api.get("RedisCluster", ns, NAME).status.nodes, " ")
      return is == wanted, is
    end)
    assert.equal(#{ ... }, #api.list("Pod", ns, "?labelSelector=control-plane%3Dredis-operator"))
  end

  local function node(number)
    return NAME .. "-" .. number
  end

  served("has three servers, and is found by its label", function()
    till_nodes(node(0), node(1), node(2))
    local found = kubectl.run("get", "sts,svc", "-n", ns, "-l", "control-plane=redis-operator", "-o", "name")
    assert.equal(("statefulset.apps/%s\nservice/%s\n"):format(NAME, NAME), found)
  end)

  asked("keeps what is written to the first in the others, at their names", function()
    local ok, said = operators.client(ns, nil, ([[
      redis-cli -h NAME-0.NAME set word kept
      for n in 1 2; do
        until [ "$(redis-cli -h NAME-$n.NAME get word)" = kept ]; do sleep 0.1; done
      done
      redis-cli -h NAME-2.NAME.$(cat /var/run/secrets/kubernetes.io/serviceaccount/namespace).svc role | head -n 1
    ]]):gsub("NAME", NAME))
    assert.same({ true, "OK\nslave\n" }, { ok, said })
  end)

  served("grows by a patch of its size, and shrinks by kubectl scale, the last servers first", function()
    local first = api.get("Pod", ns, node(0)).metadata.uid
    kubectl.run("patch", "rediscluster", NAME, "-n", ns, "--type=merge", "-p", '{"spec":{"size":5}}')
    till_nodes(node(0), node(1), node(2), node(3), node(4))
    kubectl.run("scale", "rediscluster", NAME, "-n", ns, "--replicas=2")
    till_nodes(node(0), node(1))
    assert.equal(first, api.get("Pod", ns, node(0)).metadata.uid)
    cluster.till_event(ns, "RedisCluster", NAME, "Scaling", "from 3 to 5 servers")
    cluster.till_event(ns, "RedisCluster", NAME, "Scaled", "2 of 2 servers are ready")
  end)

  served("goes, with all that it has", function()
    kubectl.run("delete", "rediscluster", NAME, "-n", ns)
    for _, kind in ipairs { "StatefulSet", "Service" } do
      operators.till_gone(kind, ns, NAME)
    end
    operators.till_gone("Pod", ns, node(0))
  end)

  -- ---- v1alpha1, in which spec.size was spec.replicas

  local OLD = "cache.example.com/v1alpha1"

  local function path_of(version, name)
    return ("/apis/cache.example.com/%s/namespaces/%s/redisclusters/%s"):format(version, ns, name)
  end

  local function read(version, name)
    local object, code = api.request("GET", path_of(version, name))
    assert(code == 200, object and object.message)
    object.metadata.managedFields = nil
    return object
  end

  -- The same state of it in v1 and in v1alpha1: the operator may write its status between two reads.
  local function both(name)
    local new, old
    wait.till("the same state of it twice", 20, function()
      new, old = read("v1", name), read("v1alpha1", name)
      return new.metadata.resourceVersion == old.metadata.resourceVersion
    end)
    return new, old
  end

  -- Both versions, which differ in apiVersion and spec alone. @return table spec of v1, table spec of v1alpha1
  local function specs(name)
    local new, old = both(name)
    assert.same({ "cache.example.com/v1", OLD }, { new.apiVersion, old.apiVersion })
    assert.same(new.metadata, old.metadata)
    assert.same(new.status, old.status)
    return new.spec, old.spec
  end

  it("written in v1alpha1 reads right in v1 and back", function()
    kubectl.apply(([[
apiVersion: %s
kind: RedisCluster
metadata:
  name: old
  namespace: %s
  labels: { team: red }
  annotations: { note: "of v1alpha1" }
spec:
  replicas: 2
]]):format(OLD, ns))
    assert.same({ { size = 2 }, { replicas = 2 } }, { specs "old" })
    wait.till("its servers to be made", 20, function()
      return (api.get("StatefulSet", ns, "old") or { spec = {} }).spec.replicas == 2
    end)
    wait.till("its status", 20, function()
      return read("v1alpha1", "old").status ~= nil
    end)
    specs "old"
  end)

  it("loses nothing when it is written back as it was read", function()
    local before
    wait.till("it to be written", 20, function()
      local old
      before, old = both "old"
      local _, code = api.request("PUT", path_of("v1alpha1", "old"), old)
      return code == 200, code -- 409: its servers have changed it
    end)
    local after = read("v1", "old")
    assert.same({ before.spec, before.metadata.generation }, { after.spec, after.metadata.generation })
    assert.same({ before.metadata.labels, before.metadata.annotations },
      { after.metadata.labels, after.metadata.annotations })
  end)

  it("is changed in either version, and read in both", function()
    kubectl.run("scale", "redisclusters.v1alpha1.cache.example.com", "old", "-n", ns, "--replicas=3")
    assert.same({ { size = 3 }, { replicas = 3 } }, { specs "old" })
    api.patch("RedisCluster", ns, "old", { spec = { size = 1 } })
    assert.same({ { size = 1 }, { replicas = 1 } }, { specs "old" })
    local path = shell.path "old.json"
    shell.write(path, cjson.encode {
      apiVersion = OLD, kind = "RedisCluster", metadata = { name = "old", namespace = ns }, spec = { replicas = 4 },
    })
    kubectl.run("apply", "--server-side", "--force-conflicts", "-f", path)
    assert.same({ { size = 4 }, { replicas = 4 } }, { specs "old" })
    wait.till("its servers to be as many", 20, function()
      return api.get("StatefulSet", ns, "old").spec.replicas == 4
    end)
  end)

  it("is refused by the words of the version in which it is written", function()
    local answer, code = api.request("PATCH", path_of("v1alpha1", "old"), { spec = { replicas = 101 } },
      "application/merge-patch+json")
    assert.equal(422, code)
    assert.matches("spec.replicas: Invalid value: 101", answer.message, 1, true)
    assert.same({ { size = 4 }, { replicas = 4 } }, { specs "old" })
  end)

  it("is listed in both versions, and goes in the old one", function()
    local sizes = {}
    for _, object in ipairs(api.request("GET", path_of("v1alpha1", "")).items) do
      assert.is_nil(object.spec.size)
      sizes[object.metadata.name] = object.spec.replicas
    end
    assert.equal(4, sizes.old)
    local columns = kubectl.run("get", "redisclusters.v1alpha1.cache.example.com", "-n", ns, "--no-headers")
    assert.matches("old +4 ", columns)
    kubectl.run("delete", "redisclusters.v1alpha1.cache.example.com", "old", "-n", ns)
    operators.till_gone("StatefulSet", ns, "old")
  end)
end)
