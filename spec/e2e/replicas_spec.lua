-- Several replicas, one at work: hand-over, crash, and a process that sleeps while another takes its place. One pod
-- for each At, whatever happens to the leader.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local judge = require "spec.e2e.support.judge"
local scripts = require "spec.e2e.support.scripts"
local shell = require "spec.e2e.support.shell"
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

  local function start(name, folder)
    return host.start {
      name = name, scripts = folder or "reconcilers/cnat.lua", namespaces = ns,
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

  it("leave the Lease to one that has something to run", function()
    local folder = scripts.folder { ["cnat.lua"] = "return {" }
    local bad = start("replica-a", folder)
    bad:till_log { msg = "script refused" }
    wait.holds("no Lease", 3, function()
      return not api.get("Lease", ns, "moonloop")
    end)
    local good = start "replica-b"
    good:till_log(LEADS)
    cluster.at(ns, "at-1", cluster.PAST)
    cluster.till_phase(ns, "at-1", "DONE")
    shell.write(folder .. "/cnat.lua", scripts.cnat)
    bad:till_log { msg = "standing by" }
  end)

  audited("hand over at once when the leader ends, not when its Lease expires", function()
    local leader, standby = start_two()
    ats(40, 8)
    wait.pass(3)
    leader:stop()
    assert.is_true(till_leads(standby, 5) < wait.patient(1))
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
    local woken = wait.now()
    leader:signal "CONT"
    assert.equal(4, leader:till_exit(10))
    assert.is_truthy(leader:stderr():find("lost the lease", 1, true), leader:stderr())
    cluster.till_done(ns, 60)
    judge.one_pod_each(mark, ns, 60)
    -- Requests that the sleeper had prepared would meet objects that the other one has made or changed: 409. A request
    -- whose head it had sent before it slept is allowed: nobody can take that back.
    for _, event in ipairs(audit.since(stopped, { ns = ns, writes = true, by_moonloop = true, code = 409 })) do
      assert.is_true(event.objectRef.resource == "leases" or audit.received(event) < woken, event.requestURI)
    end
  end)
end)


-- The whole of it at once: whatever happens to the replicas and to the server, each At has one pod, and none is
-- later than what happened can explain. After an outage there are some sixty to make, which takes a busy machine a
-- while; one after the other is a little later then. But a leap is an error: nobody worked, or one was forgotten.
describe("500 Ats that are due over two minutes", function()
  local whole = audit.available and cluster.controlplane and it or pending
  local COUNT, SECONDS, START = 500, 120, 15
  local LEAP_MAX = 10 -- seconds that a pod may be later than the next best, and the first of them than its time
  local LATE_MAX = 60 -- seconds after an outage; a retry that backs off, or a resync, comes later

  local ns, mark, outages, started

  before_each(function()
    ns, mark, outages, started = cluster.namespace "five-hundred", audit.mark(), {}, 0
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function replica()
    started = started + 1
    return host.start {
      name = "replica-" .. started, scripts = "reconcilers/cnat.lua", namespaces = ns,
      args = { "--leader-elect", "--leader-election-namespace", ns },
    }
  end

  local function standby()
    local second = replica()
    second:till_log { msg = "standing by" }
    return second
  end

  -- Nobody works from now until `back` returns.
  local function outage(deed, back)
    local window = { from = wait.now() }
    deed()
    back()
    window.to = wait.now()
    outages[#outages + 1] = window
  end

  local function till_elapsed(seconds, since)
    wait.pass(math.max(0, since + seconds - wait.now()))
  end

  -- From when on a pod that is due then could have been made: somebody worked, or does again.
  local function possible(due)
    for _, window in ipairs(outages) do
      if due >= window.from - LEAP_MAX and due <= window.to then
        return window.to
      end
    end
    return due
  end

  local function judge_times(created, due)
    local late = {}
    for index, event in ipairs(created) do
      local name = event.objectRef.name
      late[index] = { name = name, seconds = audit.received(event) - possible(due[name]) }
    end
    table.sort(late, function(one, other)
      return one.seconds < other.seconds
    end)
    local before = 0
    for _, pod in ipairs(late) do
      local says = ("%s was %.1f s late, and the next best %.1f s"):format(pod.name, pod.seconds, before)
      assert.is_true(pod.seconds - before < LEAP_MAX, says)
      assert.is_true(pod.seconds < LATE_MAX, says)
      before = math.max(before, pod.seconds)
    end
  end

  whole("have 500 pods while leaders are killed, sleep and lose their server", function()
    local leader = replica()
    leader:till_log(LEADS)
    local second = standby()
    local begun, due = wait.now(), {}
    for index = 1, COUNT do
      local name = ("at-%03d"):format(index)
      local schedule = cluster.due_in(START + index * SECONDS // COUNT)
      due[name .. "-pod"] = audit.seconds(schedule)
      cluster.at(ns, name, schedule)
    end

    till_elapsed(START + 15, begun)
    outage(function() leader:kill() end, function() second:till_log(LEADS, LEASE_SECONDS + 5) end)
    local third = standby()

    till_elapsed(START + 50, begun)
    outage(function() second:signal "STOP" end, function() third:till_log(LEADS, LEASE_SECONDS + 5) end)
    till_elapsed(30, outages[2].from)
    second:signal "CONT"
    assert.equal(4, second:till_exit(10))
    local fourth = replica()

    till_elapsed(START + 95, begun)
    outage(function() cluster.restart "kube-apiserver" end, function() cluster.restart "kubelet" end)

    cluster.till_done(ns, COUNT, 90)
    -- A server that does not answer for 10 s costs the leader its lease: it ends, and the other replica goes on.
    for _, one in ipairs { third, fourth } do
      if one:exit_code() then
        assert.equal(4, one:till_exit(10))
      end
    end
    judge.one_pod_each(mark, ns, COUNT)
    judge_times(audit.since(mark, { ns = ns, resource = "pods", verb = "create", code = 201 }), due)
  end)
end)


describe("Options of the election", function()
  local function refused(args, says)
    local words = { "run", "--scripts", "reconcilers/cnat.lua", "--leader-elect" }
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
    refused({ "--leader-election-id", "a/b" }, "not a valid name of an object")
  end)
end)
