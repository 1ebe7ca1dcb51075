-- Several replicas of which one works: hand-over, crash, and a process that sleeps while another
-- takes its place. One pod for each At, whatever happens to whoever leads.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local judge = require "spec.e2e.support.judge"
local wait = require "spec.e2e.support.wait"

local audited = audit.available and it or pending

local LEADS = { logger = "election", msg = "leading" }
local LEASE_SECONDS = 15

describe("Two replicas with --leader-elect", function()
  local ns, mark

  before_each(function()
    ns = cluster.namespace "replicas"
    mark = audit.available and audit.mark()
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(name)
    return host.start {
      name = name, scripts = "reconcilers", namespaces = ns,
      args = { "--leader-elect", "--leader-election-namespace", ns },
    }
  end

  -- The first leads, the second stands by with its scripts loaded.
  local function start_two()
    local leader = start "replica-a"
    leader:till_log(LEADS)
    local standby = start "replica-b"
    standby:till_log { msg = "standing by" }
    leader:till_ready()
    standby:till_ready()
    return leader, standby
  end

  -- Ats that become due one after the other, over so many seconds.
  local function ats(count, seconds)
    for index = 1, count do
      cluster.at(ns, ("at-%03d"):format(index), cluster.due_in(1 + index * seconds // count))
    end
  end

  local function till_leads(replica, seconds)
    local begun = wait.now()
    replica:till_log(LEADS, seconds)
    return wait.now() - begun
  end

  it("let one of them work", function()
    local leader, standby = start_two()
    cluster.at(ns, "at-1", cluster.PAST)
    cluster.till_phase(ns, "at-1", "DONE")
    assert.equal(1, leader:metric "leader_election_master_status")
    assert.equal(0, standby:metric "leader_election_master_status")
    assert.equal(0, standby:metric("controller_runtime_reconcile_total", { controller = "cnat" }))
    local lease = api.get("Lease", ns, "moonloop")
    assert.equal(LEASE_SECONDS, lease.spec.leaseDurationSeconds)
    assert.is_truthy(lease.spec.renewTime:match("^%d+%-%d+%-%d+T%d+:%d+:%d+%.%d%d%d%d%d%dZ$"), lease.spec.renewTime)
  end)

  audited("hand over within a second when the leader ends", function()
    local leader, standby = start_two()
    ats(40, 8)
    wait.pass(3)
    leader:stop()
    assert.is_true(till_leads(standby, 5) < 1)
    cluster.till_done(ns, 40)
    judge.one_pod_each(mark, ns, 40)
  end)

  audited("hand over when the Lease has expired after the leader was killed", function()
    local leader, standby = start_two()
    ats(40, 8)
    wait.pass(3)
    leader:kill()
    assert.is_true(till_leads(standby, 30) < LEASE_SECONDS + 5)
    cluster.till_done(ns, 40)
    judge.one_pod_each(mark, ns, 40)
  end)

  audited("never act at once when the leader sleeps past its Lease and wakes", function()
    local leader, standby = start_two()
    ats(60, 25)
    wait.pass(3)
    leader:signal "STOP"
    local stopped = audit.mark()
    wait.pass(20)
    standby:till_log(LEADS, 5)
    leader:signal "CONT"
    assert.equal(4, leader:till_exit(10))
    assert.is_truthy(leader:stderr():find("lost the lease", 1, true), leader:stderr())
    cluster.till_done(ns, 60)
    judge.one_pod_each(mark, ns, 60)
    -- What the sleeper had in hand would meet objects that the other one has made or changed.
    for _, event in ipairs(audit.since(stopped, { ns = ns, writes = true, by_moonloop = true, code = 409 })) do
      assert.equal("leases", event.objectRef.resource)
    end
  end)
end)


describe("Options of the election", function()
  local function refused(args, says)
    local words = { "run", "--scripts", "reconcilers", "--leader-elect" }
    table.move(args, 1, #args, #words + 1, words)
    local result = host.command(words)
    assert.equal(2, result.code)
    assert.is_truthy(result.err:find(says, 1, true), result.err)
  end

  it("are checked before anything is connected", function()
    refused({ "--leader-election-lease-duration", "5s" }, "must be longer than --leader-election-renew-deadline")
    refused({ "--leader-election-retry-period", "9s" }, "1.2 times")
    refused({ "--leader-election-lease-duration", "15500ms" }, "whole seconds")
    refused({ "--leader-election-renew-deadline", "soon" }, "expected a time")
    refused({ "--leader-election-id", "a/b" }, "no name of an object")
  end)
end)
