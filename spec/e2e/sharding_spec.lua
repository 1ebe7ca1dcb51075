-- Replicas that share the objects: each At is worked on by one of them, also when they come and go.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local judge = require "spec.e2e.support.judge"
local wait = require "spec.e2e.support.wait"

local audited = audit.available and it or pending

local LEASE_SECONDS = 15

describe("Replicas with --shard", function()
  local ns, mark

  before_each(function()
    ns = cluster.namespace "sharding"
    mark = audit.available and audit.mark()
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(name)
    local replica = host.start {
      name = name, scripts = "reconcilers/cnat.lua", namespaces = ns,
      args = { "--shard", "--leader-election-namespace", ns },
    }
    replica:till_log { logger = "shard", msg = "joined the shard group" }
    replica:till_ready()
    return replica
  end

  -- All of them see that many.
  local function till_members(replicas, count, seconds)
    for _, replica in ipairs(replicas) do
      wait.till(("%d members"):format(count), seconds, function()
        return replica:metric "moonloop_shard_members" == count
      end)
    end
  end

  local function start_three()
    local replicas = { start "replica-a", start "replica-b", start "replica-c" }
    till_members(replicas, 3, 10)
    return replicas
  end

  local function ats(first, last, seconds)
    for index = first, last do
      cluster.at(ns, ("at-%03d"):format(index), cluster.due_in(2 + (index - first) * seconds // (last - first + 1)))
    end
  end

  local function reconciles(replica)
    local sum = 0
    for _, result in ipairs { "success", "requeue_after", "error" } do
      sum = sum + (replica:metric("controller_runtime_reconcile_total", { controller = "cnat", result = result }) or 0)
    end
    return sum
  end

  audited("share the Ats, and make one pod for each", function()
    local replicas = start_three()
    ats(1, 30, 5)
    cluster.till_done(ns, 30)
    judge.one_pod_each(mark, ns, 30)
    local owned = 0
    for _, replica in ipairs(replicas) do
      assert.is_true(reconciles(replica) > 0)
      owned = owned + replica:metric("moonloop_shard_keys_owned", { controller = "cnat" })
    end
    assert.equal(30, owned)
  end)

  audited("take over from one that is killed", function()
    local replicas = start_three()
    ats(1, 30, 8)
    wait.pass(4)
    replicas[2]:kill()
    table.remove(replicas, 2)
    till_members(replicas, 2, LEASE_SECONDS + 5)
    cluster.till_done(ns, 30)
    judge.one_pod_each(mark, ns, 30)
  end)

  audited("hand over within a second when one ends, and when one joins", function()
    local replicas = start_three()
    ats(1, 30, 8)
    wait.pass(3)
    replicas[1]:stop()
    table.remove(replicas, 1)
    till_members(replicas, 2, 1)
    replicas[3] = start "replica-d"
    till_members(replicas, 3, 1)
    cluster.till_done(ns, 30)
    judge.one_pod_each(mark, ns, 30)
  end)

  audited("never act at once when one sleeps past its Lease and wakes", function()
    local replicas = start_three()
    ats(1, 30, 20)
    wait.pass(3)
    replicas[3]:signal "STOP"
    till_members({ replicas[1], replicas[2] }, 2, LEASE_SECONDS + 5)
    replicas[3]:signal "CONT"
    assert.equal(4, replicas[3]:till_exit(10))
    assert.is_truthy(replicas[3]:stderr():find("lost the lease", 1, true), replicas[3]:stderr())
    cluster.till_done(ns, 30)
    judge.one_pod_each(mark, ns, 30)
  end)

  it("leave a Lease of their own that says who shares", function()
    start "replica-a"
    local leases = api.list("Lease", ns)
    assert.equal(1, #leases)
    local lease = leases[1]
    assert.is_truthy(lease.metadata.name:match("^moonloop%-%x+$"), lease.metadata.name)
    assert.equal("moonloop", lease.metadata.labels["moonloop.dev/shard-group"])
    assert.equal(lease.metadata.name:match("%x+$"), lease.metadata.annotations["moonloop.dev/shard-view"])
    assert.equal(LEASE_SECONDS, lease.spec.leaseDurationSeconds)
  end)
end)


describe("--shard", function()
  it("excludes --leader-elect", function()
    local result = host.command { "run", "--scripts", "reconcilers/cnat.lua", "--shard", "--leader-elect" }
    assert.equal(2, result.code)
    assert.is_truthy(result.err:find("leave one out", 1, true), result.err)
  end)
end)
