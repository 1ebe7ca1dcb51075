-- HorizontalPodAutoscalers of both versions, in frozen time.
local host = require "cluster.host"
local testcluster = require "testcluster"

local V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
local V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
local DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


describe("A HorizontalPodAutoscaler", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function spec_of(fields)
    local spec = { scaleTargetRef = { apiVersion = "apps/v1", kind = "Deployment", name = "d" }, maxReplicas = 3 }
    for key, value in pairs(fields or {}) do
      spec[key] = value
    end
    return spec
  end

  local function make(path, fields, name)
    return cluster:must("POST", path, { metadata = { name = name or "h" }, spec = spec_of(fields) })
  end

  local function deployment(replicas)
    cluster:must("POST", DEPLOYMENTS, { metadata = { name = "d" }, spec = {
      replicas = replicas, selector = { matchLabels = { a = "b" } },
      template = { metadata = { labels = { a = "b" } }, spec = { containers = { { name = "a", image = "x" } } } },
    } })
    cluster:pass(1)
  end

  it("has cpu as its metric when it names none", function()
    local spec = make(V2, { behavior = {} }).spec
    assert.equal(80, spec.metrics[1].resource.target.averageUtilization)
    assert.equal(1, spec.minReplicas)
    assert.equal(4, spec.behavior.scaleUp.policies[1].value)
    assert.equal("Max", spec.behavior.scaleDown.selectPolicy)
  end)

  it("keeps the replicas within its bounds, and says that it has no metrics", function()
    deployment(1)
    make(V2, { minReplicas = 2 })
    cluster:pass(16)
    local made = cluster:must("GET", V2 .. "/h")
    assert.equal(2, cluster:must("GET", DEPLOYMENTS .. "/d").spec.replicas)
    assert.equal(2, made.status.desiredReplicas)
    assert.same({ "New size: 2; reason: Current number of replicas below Spec.MinReplicas" },
      cluster:messages("h", "SuccessfulRescale"))
    assert.equal("False", testcluster.condition(made, "ScalingActive").status)
    assert.matches("nothing here serves metrics", testcluster.condition(made, "ScalingActive").message, 1, true)
  end)

  it("leaves alone what is scaled to nothing, and tells of what is not there", function()
    make(V2)
    cluster:pass(1)
    assert.equal("FailedGetScale", testcluster.condition(cluster:must("GET", V2 .. "/h"), "AbleToScale").reason)
    deployment(0)
    cluster:pass(16)
    local made = cluster:must("GET", V2 .. "/h")
    assert.equal("ScalingDisabled", testcluster.condition(made, "ScalingActive").reason)
    assert.equal(0, cluster:must("GET", DEPLOYMENTS .. "/d").spec.replicas)
  end)

  it("of version 1 is one of version 2, and loses nothing there and back", function()
    local metrics = {
      { type = "Pods", pods = { metric = { name = "hits" }, target = { type = "AverageValue", averageValue = "10" } } },
      { type = "Object", object = {
        describedObject = { kind = "Service", name = "s", apiVersion = "v1" },
        metric = { name = "load" }, target = { type = "Value", value = "5" },
      } },
      { type = "Resource", resource = { name = "cpu", target = { type = "Utilization", averageUtilization = 50 } } },
    }
    local before = make(V2, { metrics = metrics, behavior = { scaleUp = { selectPolicy = "Min" } } })
    local older = cluster:must("GET", V1 .. "/h")
    assert.equal(50, older.spec.targetCPUUtilizationPercentage)
    assert.is_nil(older.spec.metrics)
    assert.equal('{"type":"Pods","pods":{"metricName":"hits","targetAverageValue":"10"}}',
      older.metadata.annotations["autoscaling.alpha.kubernetes.io/metrics"]:match "^%[(.-}}),")
    older.spec.maxReplicas = 7
    cluster:must("PUT", V1 .. "/h", older)
    local after = cluster:must("GET", V2 .. "/h").spec
    before.spec.maxReplicas = 7
    assert.same(host.json.encode(before.spec), host.json.encode(after))
  end)

  it("is refused when it could never scale", function()
    for _, case in ipairs {
      { V2, { maxReplicas = 0 }, "spec.maxReplicas: Required value: must be set and greater than 0" },
      { V1, { minReplicas = 4 }, "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`" },
      { V2, { scaleTargetRef = { kind = "Deployment", name = "d" } },
        'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group' },
      { V2, { metrics = { { type = "Pods" } } },
        "spec.metrics[0].pods: Required value: must populate information for the given metric source" },
      { V2, { behavior = { scaleUp = { stabilizationWindowSeconds = 3601 } } },
        "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600" },
    } do
      local code, answer = cluster:call("POST", case[1], { metadata = { name = "h" }, spec = spec_of(case[2]) })
      assert.equal(422, code)
      assert.matches(case[3], answer.message, 1, true)
    end
  end)
end)
