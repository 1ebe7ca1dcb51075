-- ReplicationControllers with pods that run nothing, in frozen time.
local testcluster = require "testcluster"

local CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"


describe("A ReplicationController", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function template(labels)
    return { metadata = { labels = labels or { app = "a" } }, spec = { containers = { { name = "a", image = "x" } } } }
  end

  local function make(replicas)
    local made = cluster:must("POST", CONTROLLERS, { metadata = { name = "rc" }, spec = {
      replicas = replicas, template = template(),
    } })
    cluster:pass(1)
    return made
  end

  it("takes labels and selector from its pods", function()
    local made = make(0)
    assert.same({ app = "a" }, made.spec.selector)
    assert.same({ app = "a" }, made.metadata.labels)
  end)

  it("keeps as many pods as it wants, and counts them", function()
    make(2)
    local names = cluster:present()
    assert.equal(2, #names)
    assert.same({ replicas = 2, readyReplicas = 2, availableReplicas = 2, fullyLabeledReplicas = 2,
      observedGeneration = 1 }, cluster:must("GET", CONTROLLERS .. "/rc").status)
    cluster:must("DELETE", testcluster.PODS .. "/" .. names[1])
    cluster:pass(2)
    assert.equal(2, #cluster:present())
  end)

  it("has a scale", function()
    make(1)
    local scale = cluster:must("GET", CONTROLLERS .. "/rc/scale")
    assert.equal("app=a", scale.status.selector)
    scale.spec.replicas = 3
    cluster:must("PUT", CONTROLLERS .. "/rc/scale", scale)
    cluster:pass(1)
    assert.equal(3, #cluster:present())
  end)

  it("lets go of a pod whose label is changed, and takes one that fits", function()
    make(1)
    local name = cluster:present()[1]
    cluster:change(testcluster.PODS .. "/" .. name, { metadata = { labels = { app = "b" } } })
    cluster:pass(1)
    assert.is_nil(cluster:pod(name).metadata.ownerReferences)
    assert.equal(2, #cluster:present())
    cluster:change(CONTROLLERS .. "/rc", { spec = { replicas = 2 } })
    cluster:change(testcluster.PODS .. "/" .. name, { metadata = { labels = { app = "a" } } })
    cluster:pass(1)
    assert.equal("rc", cluster:pod(name).metadata.ownerReferences[1].name)
  end)

  it("leaves its pods behind unless it is told otherwise", function()
    make(1)
    cluster:must("DELETE", CONTROLLERS .. "/rc")
    cluster:pass(1)
    assert.equal(1, #cluster:present())
    assert.is_nil(cluster:pods()[1].metadata.ownerReferences)
  end)

  it("is refused when it could not work", function()
    local function refused(spec)
      local code, answer = cluster:call("POST", CONTROLLERS, { metadata = { name = "rc" }, spec = spec })
      assert.equal(422, code)
      return answer.message
    end
    assert.equal('ReplicationController "rc" is invalid: [spec.selector: Required value, '
      .. "spec.template: Required value]", refused {})
    assert.matches("`selector` does not match template `labels`",
      refused { selector = { app = "b" }, template = template() }, 1, true)
    assert.matches("spec.replicas: Invalid value: -1: must be greater than or equal to 0",
      refused { replicas = -1, template = template() }, 1, true)
  end)
end)
