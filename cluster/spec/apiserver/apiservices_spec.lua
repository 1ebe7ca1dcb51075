-- APIServices: those of what is served, and those of others.
local recorded = require "recorded"
local testcluster = require "testcluster"

local PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


describe("APIServices", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function service(name, spec)
    spec.groupPriorityMinimum, spec.versionPriority = spec.groupPriorityMinimum or 1, spec.versionPriority or 1
    return { metadata = { name = name }, spec = spec }
  end

  it("tell of every version that is served, and come back", function()
    local apps = cluster:must("GET", PATH .. "/v1.apps")
    assert.equal("onstart", apps.metadata.labels["kube-aggregator.kubernetes.io/automanaged"])
    assert.same({ group = "apps", version = "v1", groupPriorityMinimum = 17800, versionPriority = 15 }, apps.spec)
    assert.equal("Local", testcluster.condition(apps, "Available").reason)
    cluster:must("DELETE", PATH .. "/v1.apps")
    cluster.settle()
    cluster:must("GET", PATH .. "/v1.apps")
  end)

  it("come and go with the versions of custom kinds", function()
    cluster:must("POST", CRDS, recorded.yaml "widgets.yaml")
    cluster.settle()
    assert.equal(1000, cluster:must("GET", PATH .. "/v1.stable.example.com").spec.groupPriorityMinimum)
    cluster:must("DELETE", CRDS .. "/widgets.stable.example.com")
    cluster.settle()
    assert.equal(404, (cluster:call("GET", PATH .. "/v1.stable.example.com")))
  end)

  it("with a service are not available", function()
    cluster:must("POST", PATH, service("v1.a.b", {
      group = "a.b", version = "v1", service = { name = "x", namespace = "default" },
    }))
    cluster.settle()
    local condition = testcluster.condition(cluster:must("GET", PATH .. "/v1.a.b"), "Available")
    assert.equal("False", condition.status)
    assert.equal("nothing here passes requests on to other API servers", condition.message)
  end)

  it("are refused when they name nothing, or have what only others have", function()
    for name, case in pairs {
      ["v1.a"] = { { group = "b", version = "v1" },
        'metadata.name: Invalid value: "v1.a": must be `spec.version+"."+spec.group`: "v1.b"' },
      ["v2."] = { { version = "v2" },
        "spec.group: Required value: only v1 may have an empty group and it better be legacy kube" },
      ["v1.c"] = { { group = "c", version = "v1", caBundle = "YQ==" },
        'spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle' },
      ["v1.d"] = { { group = "d", version = "v1", groupPriorityMinimum = 20001, service = { port = 0 } },
        "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive" },
    } do
      local code, answer = cluster:call("POST", PATH, service(name, case[1]))
      assert.equal(422, code)
      assert.matches(case[2], answer.message, 1, true)
    end
  end)
end)
