-- PodDisruptionBudgets and evictions, with pods that run nothing, in frozen time.
local testcluster = require "testcluster"

local BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
local SETS = "/apis/apps/v1/namespaces/default/replicasets"


describe("A PodDisruptionBudget", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
    local labels = { app = "a" }
    cluster:must("POST", SETS, { metadata = { name = "rs" }, spec = {
      replicas = 3, selector = { matchLabels = labels },
      template = { metadata = { labels = labels }, spec = { containers = { { name = "a", image = "x" } } } },
    } })
    cluster:pass(1)
  end)

  local function make(spec)
    spec.selector = { matchLabels = { app = "a" } }
    cluster:must("POST", BUDGETS, { metadata = { name = "b" }, spec = spec })
    cluster:pass(1)
  end

  local function status()
    return cluster:must("GET", BUDGETS .. "/b").status
  end

  local function evict(name)
    return cluster:call("POST", testcluster.PODS .. "/" .. name .. "/eviction",
      { apiVersion = "policy/v1", kind = "Eviction", metadata = { name = name } })
  end

  for name, case in pairs {
    ["minAvailable"] = { { minAvailable = 2 }, 2, 1 }, ["maxUnavailable"] = { { maxUnavailable = 2 }, 1, 2 },
    ["a share that is available"] = { { minAvailable = "50%" }, 2, 1 },
    ["a share that is not"] = { { maxUnavailable = "30%" }, 2, 1 },
    ["more than there are"] = { { minAvailable = 5 }, 5, 0 },
  } do
    it("with " .. name .. " counts what may go", function()
      make(case[1])
      local state = status()
      assert.same({ 3, 3, case[2], case[3] },
        { state.expectedPods, state.currentHealthy, state.desiredHealthy, state.disruptionsAllowed })
      assert.equal(case[3] > 0 and "SufficientPods" or "InsufficientPods", state.conditions[1].reason)
    end)
  end

  it("lets as many pods be evicted as it allows, before any controller has run", function()
    make { minAvailable = 2 }
    local names = cluster:present()
    assert.equal(201, (evict(names[1])))
    local code, answer = evict(names[2])
    assert.equal(429, code)
    assert.matches("The disruption budget b ", answer.details.causes[1].message, 1, true)
    cluster:pass(3)
    assert.equal(3, #cluster:present())
    assert.equal(1, status().disruptionsAllowed)
    assert.is_nil(status().disruptedPods)
    assert.equal(201, (evict(names[2])))
  end)

  it("does not change for a dry run", function()
    make { minAvailable = 2 }
    local name = cluster:present()[1]
    cluster:must("POST", testcluster.PODS .. "/" .. name .. "/eviction?dryRun=All",
      { apiVersion = "policy/v1", kind = "Eviction", metadata = { name = name } })
    assert.equal(1, status().disruptionsAllowed)
    assert.equal(3, #cluster:present())
  end)

  it("follows the scale of what its pods belong to", function()
    make { maxUnavailable = 1 }
    cluster:change(SETS .. "/rs", { spec = { replicas = 5 } })
    cluster:pass(2)
    assert.same({ 5, 4, 1 }, { status().expectedPods, status().desiredHealthy, status().disruptionsAllowed })
  end)
end)
