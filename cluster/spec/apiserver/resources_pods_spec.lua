local testserver = require "testserver"

local PODS = "/api/v1/namespaces/default/pods"


local function pod(name, spec)
  spec = spec or {}
  spec.containers = spec.containers or { { name = "a", image = "busybox" } }
  return { metadata = { name = name, labels = { app = name } }, spec = spec }
end


describe("pods", function()
  local world
  before_each(function() world = testserver.new() end)

  it("get an account with a token, tolerations and a priority", function()
    local spec = world:must("POST", PODS, pod "a").spec
    assert.equal("default", spec.serviceAccountName)
    assert.equal("default", spec.serviceAccount)
    assert.matches("^kube%-api%-access%-%w%w%w%w%w$", spec.volumes[1].name)
    assert.equal(spec.volumes[1].name, spec.containers[1].volumeMounts[1].name)
    assert.equal(2, #spec.tolerations)
    assert.equal(0, spec.priority)
    assert.equal("PreemptLowerPriority", spec.preemptionPolicy)
  end)

  -- Of a variable; a file is held to the same, and has to name a container.
  local SIZES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
  local DIVISORS = {
    { "limits.cpu", "1m" }, { "limits.cpu", "1000m" }, { "limits.cpu", "0" }, { "limits.memory", "1024Ki" },
    { "requests.ephemeral-storage", "1G" }, { "requests.hugepages-2Mi", "1Mi" },
    { "limits.cpu", "2", "only divisor's values 1m and 1 are supported with the cpu resource" },
    { "limits.memory", "1m", ("only divisor's values %s are supported with the memory resource"):format(SIZES) },
    { "limits.ephemeral-storage", "2",
      ("only divisor's values %s are supported with the local ephemeral storage resource"):format(SIZES) },
    { "limits.hugepages-2Mi", "3",
      ("only divisor's values %s are supported with the hugepages resource"):format(SIZES) },
  }
  for _, case in ipairs(DIVISORS) do
    local resource, divisor, message = table.unpack(case, 1, 3)
    it(("%s %s in units of %s"):format(message and "cannot have" or "can have", resource, divisor), function()
      local ref = { containerName = "a", resource = resource, divisor = divisor }
      local code, answer = world:call("POST", PODS, pod("a", {
        containers = { { name = "a", image = "x", env = { { name = "X", valueFrom = { resourceFieldRef = ref } } } } },
        volumes = { { name = "v", downwardAPI = { items = { { path = "x", resourceFieldRef = ref } } } } },
      }))
      local causes = {}
      for i, cause in ipairs(code == 422 and answer.details.causes or {}) do
        causes[i] = ("%s: %s"):format(cause.field, cause.message)
      end
      local why = message and ('Invalid value: "%s": %s'):format(resource, message)
      assert.same(message and {
        "spec.volumes[0].downwardAPI.resourceFieldRef.divisor: " .. why,
        "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: " .. why,
      } or {}, causes)
      assert.equal(message and 422 or 201, code)
    end)
  end

  it("get no token when they or their account want none", function()
    assert.is_nil(world:must("POST", PODS, pod("a", { automountServiceAccountToken = false })).spec.volumes)
    world:must("POST", "/api/v1/namespaces/default/serviceaccounts", {
      metadata = { name = "robot" }, automountServiceAccountToken = false, imagePullSecrets = { { name = "s" } },
    })
    local spec = world:must("POST", PODS, pod("b", { serviceAccountName = "robot" })).spec
    assert.is_nil(spec.volumes)
    assert.equal("s", spec.imagePullSecrets[1].name)
  end)

  it("keep the tolerations they have", function()
    local spec = world:must("POST", PODS, pod("a", { tolerations = { { operator = "Exists" } } })).spec
    assert.equal(1, #spec.tolerations)
  end)

  for _, case in ipairs {
    { "BestEffort", nil, nil },
    { "Burstable", { requests = { cpu = "1" } }, nil },
    { "Guaranteed", { limits = { cpu = "1", memory = "1Gi" } }, { limits = { cpu = "1000m", memory = "1024Mi" } } },
    { "Burstable", { limits = { cpu = "1", memory = "1Gi" } }, nil },
    { "Burstable", { limits = { cpu = "1", memory = "1Gi" }, requests = { cpu = "500m" } }, nil },
    { "BestEffort", { requests = { cpu = "0" } }, nil },
  } do
    it("are of class " .. case[1], function()
      local made = world:must("POST", PODS, pod("a", { containers = {
        { name = "a", image = "x", resources = case[2] }, { name = "b", image = "x", resources = case[3] },
      } }))
      assert.equal(case[1], made.status.qosClass)
      assert.equal("Pending", made.status.phase)
    end)
  end

  it("need no account where there are none", function()
    world = testserver.new { accounts = false }
    assert.is_nil(world:must("POST", PODS, pod "a").spec.serviceAccountName)
  end)

  it("change their generation with their spec", function()
    world:must("POST", PODS, pod "a")
    local _, changed = world:patch("strategic", PODS .. "/a",
      { spec = { containers = { { name = "a", image = "b" } } } })
    assert.equal(2, changed.metadata.generation)
    local _, labelled = world:patch("merge", PODS .. "/a", { metadata = { labels = { x = "y" } } })
    assert.equal(2, labelled.metadata.generation)
  end)

  it("are bound once", function()
    world:must("POST", PODS, pod "a")
    local binding = { apiVersion = "v1", kind = "Binding", metadata = { name = "a" }, target = { name = "here" } }
    world:must("POST", PODS .. "/a/binding", binding)
    local bound = world:must("GET", PODS .. "/a")
    assert.equal("here", bound.spec.nodeName)
    assert.equal("PodScheduled", bound.status.conditions[1].type)
    local code, answer = world:call("POST", PODS .. "/a/binding", binding)
    assert.equal(409, code)
    assert.matches('pod a is already assigned to node "here"', answer.message, 1, true)
  end)

  it("have time to go once they are on a node", function()
    world:must("POST", PODS, pod("a", { nodeName = "here", terminationGracePeriodSeconds = 7 }))
    world:must("POST", PODS, pod "b")
    assert.equal(7, world:must("DELETE", PODS .. "/a").metadata.deletionGracePeriodSeconds)
    world:must("DELETE", PODS .. "/b")
    assert.same({ "a" }, testserver.names(world:must("GET", PODS)))
  end)

  it("may say any time to end in", function()
    local longest = math.maxinteger
    world:must("POST", PODS, pod("a", { nodeName = "here", terminationGracePeriodSeconds = longest }))
    local going = world:must("DELETE", PODS .. "/a").metadata
    assert.same({ longest, "2057-09-09T01:46:40Z" }, { going.deletionGracePeriodSeconds, going.deletionTimestamp })
    going = world:must("DELETE", PODS .. "/a?gracePeriodSeconds=60").metadata
    assert.same({ 60, "2026-01-01T00:01:00Z" }, { going.deletionGracePeriodSeconds, going.deletionTimestamp })
  end)
end)


describe("evicting a pod", function()
  local world
  local EVICTION = { apiVersion = "policy/v1", kind = "Eviction", metadata = { name = "a" } }
  local BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

  local function run(name)
    world:must("POST", PODS, pod(name))
    world:patch("merge", PODS .. "/" .. name .. "/status", { status = {
      phase = "Running", conditions = { { type = "Ready", status = "True" } },
    } })
  end

  local function budget(name, status)
    world:must("POST", BUDGETS, { metadata = { name = name },
      spec = { minAvailable = 1, selector = { matchLabels = { app = "a" } } } })
    if status then
      world:patch("merge", BUDGETS .. "/" .. name .. "/status", { status = status })
    end
  end

  before_each(function()
    world = testserver.new()
    run "a"
  end)

  it("deletes it when nothing protects it", function()
    world:must("POST", PODS .. "/a/eviction", EVICTION)
    assert.same({}, testserver.names(world:must("GET", PODS)))
  end)

  it("waits for a budget that has not been looked at", function()
    budget "one"
    local code, answer = world:call("POST", PODS .. "/a/eviction", EVICTION)
    assert.equal(429, code)
    assert.equal("DisruptionBudget", answer.details.causes[1].reason)
    assert.equal("The disruption budget one is still being processed by the server.", answer.details.causes[1].message)
  end)

  it("asks its budget", function()
    budget("one", { observedGeneration = 1, disruptionsAllowed = 0, desiredHealthy = 1, currentHealthy = 1 })
    assert.equal(429, (world:call("POST", PODS .. "/a/eviction", EVICTION)))
    world:patch("merge", BUDGETS .. "/one/status", { status = { disruptionsAllowed = 1 } })
    assert.equal(201, (world:call("POST", PODS .. "/a/eviction", EVICTION)))
  end)

  it("cannot ask two", function()
    budget "one"
    budget "two"
    assert.equal(500, (world:call("POST", PODS .. "/a/eviction", EVICTION)))
  end)
end)
