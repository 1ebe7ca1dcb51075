-- DaemonSets with pods that run nothing, in frozen time.
local testcluster = require "testcluster"

local SETS = "/apis/apps/v1/namespaces/default/daemonsets"
local NODE = "/api/v1/nodes/moonloop"


describe("A DaemonSet", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function spec_of(fields, pod)
    local template = { metadata = { labels = { app = "a" } }, spec = { containers = { { name = "a", image = "x" } } } }
    for key, value in pairs(pod or {}) do
      template.spec[key] = value
    end
    local spec = { selector = { matchLabels = { app = "a" } }, template = template }
    for key, value in pairs(fields or {}) do
      spec[key] = value
    end
    return spec
  end

  local function make(fields, pod)
    local made = cluster:must("POST", SETS, { metadata = { name = "ds" }, spec = spec_of(fields, pod) })
    cluster:pass(1)
    return made
  end

  local function set()
    return cluster:must("GET", SETS .. "/ds")
  end

  local function new_image(image)
    local containers = { { name = "a", image = image } }
    cluster:change(SETS .. "/ds", { spec = { template = { spec = { containers = containers } } } })
  end

  it("has one pod on the node, which knows what it is of", function()
    local made = make()
    assert.equal("1", made.metadata.annotations["deprecated.daemonset.template.generation"])
    local pod = cluster:pods()[1]
    assert.equal("moonloop", pod.spec.nodeName)
    assert.equal("1", pod.metadata.labels["pod-template-generation"])
    local revision = cluster:must("GET", "/apis/apps/v1/namespaces/default/controllerrevisions").items[1]
    assert.equal("ds-" .. pod.metadata.labels["controller-revision-hash"], revision.metadata.name)
    assert.same({
      desiredNumberScheduled = 1, currentNumberScheduled = 1, updatedNumberScheduled = 1, numberReady = 1,
      numberAvailable = 1, numberMisscheduled = 0, observedGeneration = 1,
    }, set().status)
  end)

  it("makes a pod anew that was deleted, or has failed", function()
    make()
    local first = cluster:present()[1]
    cluster:must("DELETE", testcluster.PODS .. "/" .. first)
    cluster:pass(2)
    local second = cluster:present()[1]
    assert.not_equal(first, second)
    cluster:must("PATCH", testcluster.PODS .. "/" .. second .. "/status", { status = { phase = "Failed" } },
      { ["content-type"] = "application/merge-patch+json" })
    cluster:pass(4)
    assert.equal(1, #cluster:present())
    assert.not_equal(second, cluster:present()[1])
    assert.equal(1, #cluster:messages("ds", "FailedDaemonPod"))
  end)

  it("replaces its pod when its template changes", function()
    make()
    local events = cluster:record()
    new_image "y"
    cluster:pass(3)
    assert.equal("y", cluster:pod(cluster:present()[1]).spec.containers[1].image)
    assert.equal("-", events[1]:sub(1, 1))
    assert.equal("2", set().metadata.annotations["deprecated.daemonset.template.generation"])
    assert.equal(1, set().status.updatedNumberScheduled)
  end)

  it("with a surge starts the new pod before the old one goes", function()
    make { updateStrategy = { type = "RollingUpdate", rollingUpdate = { maxUnavailable = 0, maxSurge = 1 } } }
    local events = cluster:record()
    new_image "y"
    cluster:pass(3)
    assert.equal("+", events[1]:sub(1, 1))
    assert.equal(1, #cluster:present())
  end)

  it("that updates on deletion leaves its pod until then", function()
    make { updateStrategy = { type = "OnDelete" } }
    local name = cluster:present()[1]
    new_image "y"
    cluster:pass(2)
    assert.same({ name }, cluster:present())
    assert.is_nil(set().status.updatedNumberScheduled)
    cluster:must("DELETE", testcluster.PODS .. "/" .. name)
    cluster:pass(2)
    assert.equal("y", cluster:pod(cluster:present()[1]).spec.containers[1].image)
  end)

  it("has no pod where it selects no node, and one as soon as it does", function()
    make(nil, { nodeSelector = { colour = "blue" } })
    assert.same({}, cluster:present())
    assert.equal(0, set().status.desiredNumberScheduled)
    cluster:change(NODE, { metadata = { labels = { colour = "blue" } } })
    cluster:pass(1)
    assert.equal(1, #cluster:present())
    cluster:change(NODE, { metadata = { labels = { colour = "green" } } })
    cluster:pass(1)
    assert.same({}, cluster:present())
  end)

  it("takes a revision of its template that somebody else made, and replaces no pod for it", function()
    local REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
    make()
    local first, pod = cluster:must("GET", REVISIONS).items[1], cluster:pods()[1]
    cluster:must("POST", REVISIONS, {
      metadata = { name = "by-hand", ownerReferences = first.metadata.ownerReferences,
        labels = { app = "a", ["controller-revision-hash"] = "by-hand" } },
      data = first.data, revision = 2,
    })
    cluster:must("DELETE", REVISIONS .. "/" .. first.metadata.name)
    cluster:pass(1)
    assert.equal(1, #cluster:must("GET", REVISIONS).items)
    cluster:must("POST", REVISIONS, { metadata = { name = first.metadata.name, labels = first.metadata.labels,
      ownerReferences = first.metadata.ownerReferences }, data = first.data, revision = 1 })
    cluster:change(SETS .. "/ds", { metadata = { annotations = { again = "yes" } } })
    cluster:pass(1)
    local left = cluster:must("GET", REVISIONS).items
    assert.same({ "by-hand" }, { left[1].metadata.name, left[2] })
    local same = cluster:pods()[1]
    assert.same({ pod.metadata.uid, "by-hand" },
      { same.metadata.uid, same.metadata.labels["controller-revision-hash"] })
  end)

  it("keeps as many old revisions as it should", function()
    make { revisionHistoryLimit = 1 }
    for i = 1, 3 do
      new_image("y" .. i)
      cluster:pass(3)
    end
    assert.equal(2, #cluster:must("GET", "/apis/apps/v1/namespaces/default/controllerrevisions").items)
  end)

  it("is refused when it contradicts itself", function()
    local code, answer = cluster:call("POST", SETS, { metadata = { name = "ds" }, spec = spec_of({
      selector = { matchLabels = { app = "b" } },
      updateStrategy = { type = "RollingUpdate", rollingUpdate = { maxUnavailable = 1, maxSurge = "50%" } },
    }, { restartPolicy = "Never" }) })
    assert.equal(422, code)
    for _, words in ipairs {
      "spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not match template `labels`",
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "50%": may not be set when maxUnavailable is '
        .. "non-zero",
    } do
      assert.matches(words, answer.message, 1, true)
    end
  end)
end)
