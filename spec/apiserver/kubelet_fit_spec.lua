-- Which pods the node takes, when it looks at those again that it did not take, and which are ready by others' leave.
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
