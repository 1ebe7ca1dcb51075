-- ResourceQuotas and LimitRanges, with controllers and pods that run nothing, in frozen time.
local testcluster = require "testcluster"

local N = "/api/v1/namespaces/default/"
local QUOTAS, RANGES, CONFIGMAPS = N .. "resourcequotas", N .. "limitranges", N .. "configmaps"


local function pod(name, resources, more)
  local spec = { containers = { { name = "main", image = "x", resources = resources } } }
  for key, value in pairs(more or {}) do
    spec[key] = value
  end
  return { metadata = { name = name }, spec = spec }
end


describe("A ResourceQuota", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function make(hard, more)
    local spec = { hard = hard }
    for key, value in pairs(more or {}) do
      spec[key] = value
    end
    cluster:must("POST", QUOTAS, { metadata = { name = "q" }, spec = spec })
    cluster.settle()
  end

  local function used()
    return cluster:must("GET", QUOTAS .. "/q").status.used
  end

  local function refused(path, object)
    local code, answer = cluster:call("POST", path, object)
    assert.equal(403, code, answer.message)
    return answer.message
  end

  it("counts what is there when it is made", function()
    cluster:must("POST", testcluster.PODS, pod("a", { requests = { cpu = "200m" }, limits = { cpu = "1" } }))
    make { pods = "3", cpu = "1", ["limits.cpu"] = "2", ["count/configmaps"] = "9", secrets = "2" }
    assert.same({ pods = "1", cpu = "200m", ["limits.cpu"] = "1", ["count/configmaps"] = "1", secrets = "0" }, used())
  end)

  it("refuses what would exceed it, and charges nothing for that", function()
    make { ["count/configmaps"] = "2" }
    cluster:configmap "a"
    assert.equal('configmaps "b" is forbidden: exceeded quota: q, requested: count/configmaps=1, '
      .. "used: count/configmaps=2, limited: count/configmaps=2", refused(CONFIGMAPS, { metadata = { name = "b" } }))
    assert.same({ ["count/configmaps"] = "2" }, used())
  end)

  it("lets one of two have the last unit, before any controller has run", function()
    make { ["count/configmaps"] = "2" }
    local first = cluster:call("POST", CONFIGMAPS, { metadata = { name = "a" } })
    local second = cluster:call("POST", CONFIGMAPS, { metadata = { name = "b" } })
    assert.same({ 201, 403 }, { first, second })
  end)

  it("charges nothing for a dry run, or for a name that is taken", function()
    make { ["count/configmaps"] = "5" }
    cluster:must("POST", CONFIGMAPS .. "?dryRun=All", { metadata = { name = "a" } })
    cluster:configmap "a"
    assert.equal(409, (cluster:call("POST", CONFIGMAPS, { metadata = { name = "a" } })))
    assert.same({ ["count/configmaps"] = "2" }, used())
  end)

  it("keeps what others write into its status until something is gone", function()
    make { ["count/configmaps"] = "5" }
    cluster:change(QUOTAS .. "/q/status", { status = { used = { ["count/configmaps"] = "4" } } })
    cluster.settle()
    assert.same({ ["count/configmaps"] = "4" }, used())
    cluster:configmap "a"
    assert.equal(403, (cluster:call("POST", CONFIGMAPS, { metadata = { name = "b" } })))
    cluster:must("DELETE", CONFIGMAPS .. "/a")
    cluster.settle()
    assert.same({ ["count/configmaps"] = "1" }, used())
  end)

  it("puts right what others write into its status after five minutes", function()
    make { ["count/configmaps"] = "5" }
    cluster:change(QUOTAS .. "/q/status", { status = { hard = { ["count/configmaps"] = "9" } } })
    cluster.settle()
    assert.equal("9", cluster:must("GET", QUOTAS .. "/q").status.hard["count/configmaps"])
    cluster:pass(300)
    assert.equal("5", cluster:must("GET", QUOTAS .. "/q").status.hard["count/configmaps"])
  end)

  it("gives back what is deleted", function()
    make { ["count/configmaps"] = "2" }
    cluster:configmap "a"
    cluster:must("DELETE", CONFIGMAPS .. "/a")
    cluster.settle()
    assert.same({ ["count/configmaps"] = "1" }, used())
    cluster:configmap "b"
  end)

  it("charges an update for what it uses more", function()
    make { ["services.nodeports"] = "2", services = "5" }
    local ports = { { name = "a", port = 1 }, { name = "b", port = 2 }, { name = "c", port = 3 } }
    cluster:must("POST", N .. "services", { metadata = { name = "a" }, spec = { ports = ports } })
    local code, answer = cluster:patch("merge", N .. "services/a", { spec = { type = "NodePort" } })
    assert.equal(403, code)
    assert.matches("exceeded quota: q, requested: services.nodeports=3, used: services.nodeports=0, "
      .. "limited: services.nodeports=2", answer.message, 1, true)
    cluster:change(N .. "services/a", { spec = { type = "NodePort", ports = { ports[1], ports[2] } } })
    assert.same({ services = "1", ["services.nodeports"] = "2" }, used())
  end)

  it("wants containers to say what it limits", function()
    make { ["requests.memory"] = "1Gi", ["limits.cpu"] = "1" }
    assert.equal('pods "a" is forbidden: failed quota: q: must specify limits.cpu for: main; '
      .. "requests.memory for: main", refused(testcluster.PODS, pod "a"))
  end)

  it("does not count pods that have ended", function()
    make { pods = "1", ["count/pods"] = "5" }
    cluster:must("POST", testcluster.PODS, pod("a", nil, { restartPolicy = "Never" }))
    cluster.settle()
    cluster:must("PATCH", testcluster.PODS .. "/a/status", { status = { phase = "Succeeded" } },
      { ["content-type"] = "application/merge-patch+json" })
    cluster.settle()
    assert.same({ pods = "0", ["count/pods"] = "1" }, used())
    cluster:must("POST", testcluster.PODS, pod "b")
  end)

  it("with scopes is about the pods that meet them", function()
    make({ pods = "1" }, { scopes = { "Terminating" } })
    cluster:must("POST", testcluster.PODS, pod "a")
    cluster:must("POST", testcluster.PODS, pod("b", nil, { activeDeadlineSeconds = 60 }))
    assert.matches("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1",
      refused(testcluster.PODS, pod("c", nil, { activeDeadlineSeconds = 60 })), 1, true)
  end)

  it("can be about a class of priority", function()
    make({ pods = "0" }, { scopeSelector = { matchExpressions = {
      { scopeName = "PriorityClass", operator = "In", values = { "system-node-critical" } },
    } } })
    cluster:must("POST", testcluster.PODS, pod "a")
    assert.matches("exceeded quota: q",
      refused(testcluster.PODS, pod("b", nil, { priorityClassName = "system-node-critical" })), 1, true)
  end)

  it("counts the storage that claims ask for, by class as well", function()
    make { ["requests.storage"] = "2Gi", ["fast.storageclass.storage.k8s.io/requests.storage"] = "1Gi" }
    local function claim(name, size, class)
      return { metadata = { name = name }, spec = { accessModes = { "ReadWriteOnce" }, storageClassName = class,
        resources = { requests = { storage = size } } } }
    end
    cluster:must("POST", N .. "persistentvolumeclaims", claim("a", "1Gi", "fast"))
    assert.same({ ["requests.storage"] = "1Gi", ["fast.storageclass.storage.k8s.io/requests.storage"] = "1Gi" }, used())
    assert.matches("requested: fast.storageclass.storage.k8s.io/requests.storage=1Mi, used:",
      refused(N .. "persistentvolumeclaims", claim("b", "1Mi", "fast")), 1, true)
  end)

  it("that is full makes a ReplicaSet say so, until there is room", function()
    make { pods = "0" }
    local labels = { app = "a" }
    cluster:must("POST", "/apis/apps/v1/namespaces/default/replicasets", { metadata = { name = "a" }, spec = {
      replicas = 1, selector = { matchLabels = labels },
      template = { metadata = { labels = labels }, spec = pod("a").spec },
    } })
    cluster:pass(1)
    local function failure()
      local set = cluster:must("GET", "/apis/apps/v1/namespaces/default/replicasets/a")
      return testcluster.condition(set, "ReplicaFailure")
    end
    assert.equal("FailedCreate", failure().reason)
    assert.matches("exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0", failure().message, 1, true)
    cluster:change(QUOTAS .. "/q", { spec = { hard = { pods = "1" } } })
    cluster:pass(30)
    assert.is_nil(failure())
    assert.equal(1, #cluster:present())
  end)

  it("is refused with what it cannot count", function()
    local code, answer = cluster:call("POST", QUOTAS, { metadata = { name = "q" }, spec = {
      hard = { pods = "1.5", bananas = "1", cpu = "-1" }, scopes = { "BestEffort", "Never" },
    } })
    assert.equal(422, code)
    for _, words in ipairs {
      'spec.hard[bananas]: Invalid value: "bananas": must be a standard resource for quota',
      'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      'spec.hard[pods]: Invalid value: "1500m": must be an integer',
      'spec.scopes: Invalid value: ["BestEffort","Never"]: unsupported scope',
      'spec.scopes: Invalid value: ["BestEffort","Never"]: unsupported scope applied to resource',
    } do
      assert.matches(words, answer.message, 1, true)
    end
  end)
end)


describe("A LimitRange", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function make(...)
    return cluster:must("POST", RANGES, { metadata = { name = "r" }, spec = { limits = { ... } } })
  end

  it("takes what it does not say of containers from what it says", function()
    local item = make({ type = "Container", max = { cpu = "1" }, min = { memory = "1Mi" } }).spec.limits[1]
    assert.same({ cpu = "1" }, item.default)
    assert.same({ cpu = "1", memory = "1Mi" }, item.defaultRequest)
  end)

  it("gives containers what they lack, and notes it", function()
    make { type = "Container", default = { cpu = "500m", memory = "64Mi" }, defaultRequest = { cpu = "100m" } }
    local made = cluster:must("POST", testcluster.PODS, pod("a", { limits = { memory = "1Gi" } }))
    assert.same({ limits = { cpu = "500m", memory = "1Gi" }, requests = { cpu = "100m", memory = "1Gi" } },
      made.spec.containers[1].resources)
    assert.equal("LimitRanger plugin set: cpu request for container main; cpu limit for container main",
      made.metadata.annotations["kubernetes.io/limit-ranger"])
  end)

  it("refuses pods that leave its bounds", function()
    make({ type = "Container", max = { cpu = "1" }, maxLimitRequestRatio = { cpu = "2" } },
      { type = "Pod", min = { memory = "1Mi" } })
    local code, answer = cluster:call("POST", testcluster.PODS,
      pod("a", { limits = { cpu = "2" }, requests = { cpu = "500m" } }))
    assert.equal(403, code)
    assert.equal('pods "a" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, cpu max limit to '
      .. "request ratio per Container is 2, but provided ratio is 4.000000, minimum memory usage per Pod is 1Mi.  "
      .. "No request is specified]", answer.message)
  end)

  it("refuses claims that leave its bounds", function()
    make { type = "PersistentVolumeClaim", min = { storage = "1Gi" }, max = { storage = "2Gi" } }
    local function claim(size)
      local _, answer = cluster:call("POST", N .. "persistentvolumeclaims", { metadata = { name = "a" }, spec = {
        accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = size } } } })
      return answer.message
    end
    assert.matches("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi", claim "1Mi", 1, true)
    assert.matches("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi", claim "3Gi", 1, true)
    assert.is_nil(claim "2Gi")
  end)

  it("is refused when its amounts contradict each other", function()
    local code, answer = cluster:call("POST", RANGES, { metadata = { name = "r" }, spec = { limits = {
      { type = "Container", min = { cpu = "2" }, max = { cpu = "1" }, default = { cpu = "1" } },
      { type = "Container" }, { type = "Pod", default = { cpu = "1" } }, { type = "Nothing" },
      { type = "PersistentVolumeClaim" },
    } } })
    assert.equal(422, code)
    for _, words in ipairs {
      'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
      'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
      'spec.limits[1].type: Duplicate value: "Container"',
      "spec.limits[2].default: Forbidden: may not be specified when `type` is 'Pod'",
      'spec.limits[3].type: Invalid value: "Nothing": must be a standard limit type or fully qualified',
      "spec.limits[4].limits: Required value: either minimum or maximum storage value is required",
    } do
      assert.matches(words, answer.message, 1, true)
    end
  end)
end)
