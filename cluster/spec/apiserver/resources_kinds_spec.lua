local kinds = require "cluster.apiserver.resources.kinds"
local resources = require "cluster.apiserver.resources"
local testserver = require "testserver"


describe("built-in kinds", function()
  it("say what they are", function()
    for _, res in ipairs(resources.all()) do
      assert.is_string(res.plural)
      assert.is_table(res.schema, res.id)
      assert.is_function(res.strategy.defaults or res.strategy.review, res.id)
      assert.equal(res.kind .. "List", res.list_kind)
    end
  end)

  it("have cells where they have columns of their own", function()
    for _, res in ipairs(resources.all()) do
      local columns = res.strategy.columns or res.printed or ""
      assert.equal(columns ~= "", res.strategy.cells ~= nil, res.id)
    end
  end)

  it("are all known to a real server", function()
    local served, listed = #resources.all(), 0
    for _, plurals in pairs(kinds) do
      for _ in pairs(plurals) do
        listed = listed + 1
      end
    end
    assert.equal(listed, served)
  end)

  it("are there once each", function()
    local seen = {}
    for _, res in ipairs(resources.all()) do
      local name = res.api_version .. "/" .. res.plural
      assert.is_nil(seen[name])
      seen[name] = true
    end
  end)
end)


describe("workloads", function()
  local world
  before_each(function() world = testserver.new() end)

  local function template(labels)
    return { metadata = { labels = labels }, spec = { restartPolicy = not labels and "Never" or nil,
      containers = { { name = "a", image = "busybox" } } } }
  end

  it("of Jobs know their pods by the Job's uid", function()
    local job = world:must("POST", "/apis/batch/v1/namespaces/default/jobs",
      { metadata = { name = "a" }, spec = { template = template() } })
    local labels = job.spec.template.metadata.labels
    assert.equal(job.metadata.uid, labels["batch.kubernetes.io/controller-uid"])
    assert.equal(job.metadata.uid, job.spec.selector.matchLabels["batch.kubernetes.io/controller-uid"])
    assert.equal("a", labels["job-name"])
    assert.same(labels, job.metadata.labels)
    assert.equal(6, job.spec.backoffLimit)
  end)

  it("of Jobs take a selector of somebody's own", function()
    local job = world:must("POST", "/apis/batch/v1/namespaces/default/jobs", { metadata = { name = "a" }, spec = {
      manualSelector = true, selector = { matchLabels = { a = "b" } },
      template = { metadata = { labels = { a = "b" } }, spec = template().spec },
    } })
    assert.same({ a = "b" }, job.spec.template.metadata.labels)
  end)

  it("of StatefulSets have claims in their pods", function()
    local set = world:must("POST", "/apis/apps/v1/namespaces/default/statefulsets", {
      metadata = { name = "a" }, spec = {
      selector = { matchLabels = { a = "b" } },
      template = { metadata = { labels = { a = "b" } }, spec = { containers = {
        { name = "a", image = "x", volumeMounts = { { name = "data", mountPath = "/data" } } },
      } } },
      volumeClaimTemplates = { { metadata = { name = "data" },
        spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1024Mi" } } } } },
      },
    })
    assert.equal("1Gi", set.spec.volumeClaimTemplates[1].spec.resources.requests.storage)
    assert.equal("", set.spec.serviceName)
  end)

  it("of Deployments are scaled", function()
    local path = "/apis/apps/v1/namespaces/default/deployments"
    world:must("POST", path, { metadata = { name = "a" },
      spec = { selector = { matchLabels = { a = "b" } }, template = template { a = "b" } } })
    local _, scale = world:patch("merge", path .. "/a/scale", { spec = { replicas = 3 } })
    assert.equal(3, scale.spec.replicas)
    assert.equal("a=b", scale.status.selector)
    local deployment = world:must("GET", path .. "/a")
    assert.equal(3, deployment.spec.replicas)
    assert.equal(2, deployment.metadata.generation)
  end)
end)


describe("events", function()
  it("are read in both forms", function()
    local world = testserver.new()
    world:must("POST", "/api/v1/namespaces/default/events", {
      metadata = { name = "a" }, involvedObject = { kind = "Pod", name = "p", namespace = "default" }, message = "m",
      count = 2,
    })
    local event = world:must("GET", "/apis/events.k8s.io/v1/namespaces/default/events/a")
    assert.equal("m", event.note)
    assert.equal("p", event.regarding.name)
    assert.equal(2, event.deprecatedCount)
    local list = world:must("GET",
      "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dp")
    assert.same({ "a" }, testserver.names(list))
  end)
end)


describe("claims of volumes", function()
  local CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
  local world

  before_each(function()
    world = testserver.new()
    world:must("POST", CLAIMS, { metadata = { name = "a" },
      spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } } })
  end)

  it("go when nothing uses them", function()
    local answer = world:must("DELETE", CLAIMS .. "/a")
    assert.same({ "kubernetes.io/pvc-protection" }, answer.metadata.finalizers)
    world:settle()
    assert.equal(404, (world:call("GET", CLAIMS .. "/a")))
  end)

  it("wait for the pod that uses them", function()
    world:must("POST", "/api/v1/namespaces/default/pods", { metadata = { name = "p" }, spec = {
      nodeName = "n", containers = { { name = "a", image = "x" } },
      volumes = { { name = "v", persistentVolumeClaim = { claimName = "a" } } },
    } })
    world:must("DELETE", CLAIMS .. "/a")
    world:settle()
    assert.is_string(world:must("GET", CLAIMS .. "/a").metadata.deletionTimestamp)
    world:must("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0")
    world:settle()
    assert.equal(404, (world:call("GET", CLAIMS .. "/a")))
  end)
end)
