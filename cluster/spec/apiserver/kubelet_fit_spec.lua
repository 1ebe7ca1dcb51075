-- Which pods the node takes, when it looks at those again that it did not take, and which are ready by others' leave.
local sysctls = require "cluster.kubelet.sysctls"
local testcluster = require "testcluster"

local NODE = "/api/v1/nodes/moonloop"


describe("The node", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function make(name, spec, port)
    spec.containers = { { name = "c", image = "x", ports = port and { port } or nil } }
    cluster:must("POST", testcluster.PODS, { metadata = { name = name }, spec = spec })
    cluster.settle()
  end

  -- Its phase, and why it is not scheduled.
  local function state(name)
    local status = cluster:pod(name).status
    for _, condition in ipairs(status.conditions) do
      if condition.type == "PodScheduled" then
        return { status.phase, condition.message }
      end
    end
  end

  it("takes a pod when it gets the labels that the pod selects", function()
    make("blue", { nodeSelector = { colour = "blue" } })
    assert.same({ "Pending", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector." },
      state "blue")
    cluster:change(NODE, { metadata = { labels = { colour = "blue" } } })
    cluster.settle()
    assert.same({ "Running" }, state "blue")
    make("second", { nodeSelector = { colour = "blue" } })
    assert.same({ "Running" }, state "second")
  end)

  it("says which generation of a pod it does not take", function()
    make("blue", { nodeSelector = { colour = "blue" } })
    assert.equal(1, testcluster.condition(cluster:pod "blue", "PodScheduled").observedGeneration)
    make("named", { nodeName = "moonloop" }, { containerPort = 80, hostPort = 8080 })
    make("rejected", { nodeName = "moonloop" }, { containerPort = 80, hostPort = 8080 })
    assert.equal("Failed", cluster:pod("rejected").status.phase)
    assert.equal(1, cluster:pod("rejected").status.observedGeneration)
  end)

  it("leaves the pods of another scheduler to that, and runs those that it binds", function()
    make("foreign", { schedulerName = "batch" })
    cluster:change(NODE, { metadata = { labels = { colour = "blue" } } })
    cluster.settle()
    assert.equal("Pending", cluster:pod("foreign").status.phase)
    assert.is_nil(cluster:pod("foreign").status.conditions)
    cluster:must("POST", testcluster.PODS .. "/foreign/binding", {
      metadata = { name = "foreign" }, target = { kind = "Node", name = "moonloop" },
    })
    cluster.settle()
    assert.same({ "Running" }, state "foreign")
  end)

  it("takes one pod with a hostPort at a time", function()
    local port = { containerPort = 80, hostPort = 8080 }
    make("first", {}, port)
    make("second", {}, port)
    make("other", {}, { containerPort = 80, hostPort = 8080, protocol = "UDP" })
    assert.same({ "Running" }, state "first")
    assert.same({ "Pending", "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports." },
      state "second")
    assert.same({ "Running" }, state "other")
    cluster:must("DELETE", testcluster.PODS .. "/first?gracePeriodSeconds=0")
    cluster:pass(1)
    assert.same({ "Running" }, state "second")
  end)

  it("rejects a pod that names it and asks for a port that is taken", function()
    local port = { containerPort = 80, hostPort = 8080, hostIP = "127.0.0.1" }
    make("first", { nodeName = "moonloop" }, port)
    make("elsewhere", { nodeName = "moonloop" }, { containerPort = 80, hostPort = 8080, hostIP = "10.0.0.1" })
    make("second", { nodeName = "moonloop" }, { containerPort = 80, hostPort = 8080 })
    assert.equal("Running", cluster:pod("first").status.phase)
    assert.equal("Running", cluster:pod("elsewhere").status.phase)
    local status = cluster:pod("second").status
    assert.same({ "Failed", "NodePorts", "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports "
      .. "for the requested pod ports" }, { status.phase, status.reason, status.message })
  end)

  it("rejects a pod for another system", function()
    make("glass", { os = { name = "windows" } })
    local status = cluster:pod("glass").status
    assert.same({ "Failed", "PodOSNotSupported", "Pod was rejected: Failed to admit pod as the OS field doesn't match "
      .. "node OS" }, { status.phase, status.reason, status.message })
    make("penguin", { os = { name = "linux" } })
    assert.equal("Running", cluster:pod("penguin").status.phase)
  end)

  it("rejects a pod that asks for a sysctl that is not safe", function()
    local function ask(name, sysctl)
      make(name, { securityContext = { sysctls = { { name = sysctl, value = "1" } } } })
      return cluster:pod(name).status
    end
    assert.equal("Running", ask("safe", "net.ipv4.tcp_syncookies").phase)
    assert.equal("Running", ask("slashed", "kernel/shm_rmid_forced").phase)
    local status = ask("unsafe", "kernel/msgmax")
    assert.same({ "Failed", "SysctlForbidden",
      'Pod was rejected: forbidden sysctl: "kernel.msgmax" not allowlisted' },
      { status.phase, status.reason, status.message })
  end)

  it("sets the sysctls of a pod's network, and nothing beside them", function()
    local lines = sysctls.of_network { spec = { securityContext = { sysctls = {
      { name = "kernel.shm_rmid_forced", value = "1" }, { name = "net.ipv4.tcp_rmem", value = "4096\t8192 16384" },
      { name = "net/ipv4/tcp_syncookies", value = "1\nkernel/msgmax=1" },
    } } } }
    assert.equal("net/ipv4/tcp_rmem=4096 8192 16384\nnet/ipv4/tcp_syncookies=1 kernel/msgmax=1\n", lines)
    assert.equal("", sysctls.of_network { spec = {} })
  end)

  it("has a pod ready when its readiness gates are open, and keeps conditions of others", function()
    local GATE = "example.com/registered"
    local function condition(type)
      for _, one in ipairs(cluster:pod("gated").status.conditions) do
        if one.type == type then
          return { one.status, one.reason, one.message }
        end
      end
    end
    local function open(status)
      cluster:patch("strategic", testcluster.PODS .. "/gated/status",
        { status = { conditions = { { type = GATE, status = status } } } })
      cluster.settle()
    end
    make("gated", { readinessGates = { { conditionType = GATE } } })
    assert.same({ "False", "ReadinessGatesNotReady",
      'corresponding condition of pod readiness gate "example.com/registered" does not exist.' }, condition "Ready")
    assert.same({ "True" }, condition "ContainersReady")
    open "False"
    assert.equal('the status of pod readiness gate "example.com/registered" is not "True", but False',
      condition "Ready"[3])
    open "True"
    assert.same({ "True" }, condition "Ready")
    assert.same({ "True" }, condition(GATE))
  end)

  it("takes no pod while it is cordoned, but those that tolerate that", function()
    cluster:change(NODE, { spec = { unschedulable = true } })
    make("waits", {})
    make("tolerates", { tolerations = { { key = "node.kubernetes.io/unschedulable", operator = "Exists" } } })
    assert.same({ "Pending", "0/1 nodes are available: 1 node(s) were unschedulable." }, state "waits")
    assert.same({ "Running" }, state "tolerates")
    cluster:change(NODE, { spec = { unschedulable = false } })
    cluster.settle()
    assert.same({ "Running" }, state "waits")
  end)
end)


describe("A node that takes three pods", function()
  local FULL = "0/1 nodes are available: 1 Too many pods."
  local SETS = "/apis/apps/v1/namespaces/default/replicasets"
  local cluster

  before_each(function()
    cluster = testcluster.new(nil, nil, 3)
  end)

  local function make(name, spec)
    spec.containers = { { name = "c", image = "x" } }
    cluster:must("POST", testcluster.PODS, { metadata = { name = name }, spec = spec })
    cluster.settle()
  end

  -- How many pods are in each phase.
  local function phases()
    local found = {}
    for _, pod in ipairs(cluster:pods()) do
      found[pod.status.phase] = (found[pod.status.phase] or 0) + 1
    end
    return found
  end

  it("says so, and the rest wait", function()
    local status = cluster:must("GET", NODE).status
    assert.same({ "3", "3" }, { status.capacity.pods, status.allocatable.pods })
    cluster:must("POST", SETS, {
      metadata = { name = "many" },
      spec = {
        replicas = 8, selector = { matchLabels = { a = "b" } },
        template = { metadata = { labels = { a = "b" } }, spec = { containers = { { name = "c", image = "x" } } } },
      },
    })
    cluster:pass(5)
    assert.same({ Running = 3, Pending = 5 }, phases())
    for _, pod in ipairs(cluster:pods()) do
      local condition = pod.status.phase == "Pending" and pod.status.conditions[1]
      assert.same(condition and { "PodScheduled", "False", "Unschedulable", FULL } or {},
        condition and { condition.type, condition.status, condition.reason, condition.message } or {})
    end
    cluster:change(SETS .. "/many", { spec = { replicas = 2 } })
    cluster:pass(40)
    assert.same({ Running = 2 }, phases())
  end)

  it("takes one more for each that ends or goes", function()
    for _, name in ipairs { "a", "b", "c", "d", "e" } do
      make(name, { restartPolicy = "Never", terminationGracePeriodSeconds = 1 })
    end
    assert.same({ Running = 3, Pending = 2 }, phases())
    cluster:must("DELETE", testcluster.PODS .. "/a?gracePeriodSeconds=0")
    cluster:pass(1)
    assert.same({ Running = 3, Pending = 1 }, phases())
    cluster.runtime:finish(cluster:pod "b", 0)
    cluster:pass(1)
    assert.same({ Running = 3, Succeeded = 1 }, phases())
  end)

  it("rejects a pod that names it", function()
    for _, name in ipairs { "a", "b", "c" } do
      make(name, {})
    end
    make("d", { nodeName = "moonloop" })
    local status = cluster:pod("d").status
    assert.same({ "Failed", "OutOfpods",
      "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3" },
      { status.phase, status.reason, status.message })
    assert.same({ Running = 3, Failed = 1 }, phases())
  end)
end)
