-- NoExecute taints of the node, and the pods that do not tolerate them.
local host = require "cluster.host"
local testcluster = require "testcluster"

local NODE = "/api/v1/nodes/moonloop"


describe("A node with a NoExecute taint", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function make(name, tolerations)
    cluster:must("POST", cluster.PODS, {
      metadata = { name = name },
      spec = { containers = { { name = "c", image = "x" } }, tolerations = tolerations },
    })
    cluster.settle()
  end

  local function taint(list)
    cluster:change(NODE, { spec = { taints = host.json.array(list) } })
    cluster.settle()
  end

  local FULL = { key = "full", value = "yes", effect = "NoExecute" }

  local function toleration(seconds, value)
    return { key = "full", value = value or "yes", effect = "NoExecute", tolerationSeconds = seconds }
  end

  it("loses the pods that do not tolerate it at once, and says why", function()
    cluster.is_deaf = true
    make "plain"
    make("other", { toleration(nil, "no") })
    make("stays", { toleration() })
    make("any", { { operator = "Exists" } })
    taint { FULL }
    assert.same({ "any", "stays" }, cluster:present())
    local condition = cluster.condition(cluster:pod "plain", "DisruptionTarget")
    assert.same({ "True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint" },
      { condition.status, condition.reason, condition.message })
    assert.same({ "Marking for deletion Pod default/plain" }, cluster:messages("plain", "TaintManagerEviction"))
    assert.same({}, cluster:messages("stays", "TaintManagerEviction"))
  end)

  it("keeps its pods when the taint has another effect", function()
    make "plain"
    taint { { key = "full", effect = "NoSchedule" }, { key = "full", effect = "PreferNoSchedule" } }
    assert.same({ "plain" }, cluster:present())
  end)

  it("keeps a pod for as many seconds as it tolerates the taint, the fewest of all taints", function()
    local brief = { key = "more", operator = "Exists", effect = "NoExecute", tolerationSeconds = 20 }
    make("short", { toleration(60), brief })
    make("long", { toleration(60), { key = "more", operator = "Exists" } })
    taint { FULL, { key = "more", effect = "NoExecute" } }
    cluster:pass(19)
    assert.same({ "long", "short" }, cluster:present())
    cluster:pass(2)
    assert.same({ "long" }, cluster:present())
    cluster:pass(38)
    assert.same({ "long" }, cluster:present())
    cluster:pass(2)
    assert.same({}, cluster:present())
  end)

  it("keeps the pod when the taint goes in time", function()
    make("patient", { toleration(60) })
    taint { FULL }
    cluster:pass(50)
    taint {}
    cluster:pass(100)
    assert.same({ "patient" }, cluster:present())
    assert.same({ "Cancelling deletion of Pod default/patient" }, cluster:messages("patient", "TaintManagerEviction"))
    taint { FULL }
    cluster:pass(59)
    assert.same({ "patient" }, cluster:present())
    cluster:pass(2)
    assert.same({}, cluster:present())
  end)

  it("gets no new pods that do not tolerate it, until it goes", function()
    taint { FULL }
    make "plain"
    make("brief", { toleration(30) })
    assert.same({ "Pending", "0/1 nodes are available: 1 node(s) had untolerated taint(s)." },
      { cluster:pod "plain".status.phase, cluster.condition(cluster:pod "plain", "PodScheduled").message })
    assert.equal("Running", cluster:pod "brief".status.phase)
    cluster:pass(31)
    assert.same({ "plain" }, cluster:present())
    taint {}
    assert.equal("Running", cluster:pod "plain".status.phase)
  end)

  it("has the pods of a Deployment again when it goes, and as many meanwhile", function()
    cluster:must("POST", "/apis/apps/v1/namespaces/default/deployments", {
      metadata = { name = "web" },
      spec = {
        replicas = 2, selector = { matchLabels = { app = "web" } },
        template = {
          metadata = { labels = { app = "web" } }, spec = { containers = { { name = "c", image = "x" } } },
        },
      },
    })
    cluster:pass(1)
    taint { FULL }
    cluster:pass(60)
    assert.equal(2, #cluster:present())
    for _, pod in ipairs(cluster:pods()) do
      assert.equal("Pending", pod.status.phase)
    end
    taint {}
    cluster:pass(1)
    for _, pod in ipairs(cluster:pods()) do
      assert.equal("Running", pod.status.phase)
    end
  end)
end)
