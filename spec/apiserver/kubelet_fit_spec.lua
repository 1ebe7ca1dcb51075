-- Which pods the node takes, when it looks at those again that it did not take, and which are ready by others' leave.
local testcluster = require "testcluster"

local NODE = "/api/v1/nodes/moonloop"


describe("The node", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function make(name, spec)
    spec.containers = { { name = "c", image = "x" } }
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
