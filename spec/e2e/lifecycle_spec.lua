-- The life of an At: PENDING, RUNNING, DONE, and the one pod that belongs to it.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local judge = require "spec.e2e.support.judge"
local kubectl = require "spec.e2e.support.kubectl"
local wait = require "spec.e2e.support.wait"

local audited = audit.available and it or pending

local LATENESS_MAX = 0.25

describe("An At", function()
  local ns, moonloop

  setup(function()
    ns = cluster.namespace "lifecycle"
    moonloop = host.start { name = "lifecycle", scripts = "reconcilers/cnat.lua" }
    moonloop:till_ready()
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  -- The phases that it shows until it is DONE, in order, each once.
  local function phases_of(name)
    local seen = {}
    wait.till(name .. " to be DONE", 20, function()
      local at = api.get("At", ns, name)
      local phase = at.status and at.status.phase
      if phase and phase ~= seen[#seen] then
        seen[#seen + 1] = phase
      end
      return phase == "DONE", table.concat(seen, ", ")
    end)
    return seen
  end

  it("goes from PENDING over RUNNING to DONE", function()
    cluster.at(ns, "phases", cluster.due_in(2), "sleep 1")
    assert.same({ "PENDING", "RUNNING", "DONE" }, phases_of "phases")
  end)

  audited("due in 3 s has its pod within a quarter of a second of the instant, and not before it", function()
    local mark, due = audit.mark(), os.time() + 3
    cluster.at(ns, "punctual", os.date("!%Y-%m-%dT%H:%M:%SZ", due))
    cluster.till_phase(ns, "punctual", "PENDING", 2)
    cluster.till_phase(ns, "punctual", "DONE")
    local creates = audit.since(mark, { ns = ns, resource = "pods", verb = "create" })
    assert.equal(1, #creates)
    local lateness = audit.received(creates[1]) - due
    assert.is_true(lateness >= 0 and lateness <= wait.patient(LATENESS_MAX), ("%.3f s late"):format(lateness))
  end)

  it("that is due already runs at once and never says PENDING", function()
    local begun = wait.now()
    cluster.at(ns, "overdue", cluster.PAST)
    cluster.till_pod(ns, "overdue-pod", 1)
    assert.is_true(wait.now() - begun < wait.patient(1))
    local at = cluster.till_phase(ns, "overdue", "DONE")
    assert.equal("DONE", at.status.phase)
  end)

  it("has a pod that is its own", function()
    local at = cluster.at(ns, "owner", cluster.PAST, "echo one two  three")
    local pod = cluster.till_pod(ns, "owner-pod")
    assert.equal("owner", pod.metadata.labels.app)
    assert.equal("OnFailure", pod.spec.restartPolicy)
    assert.equal(1, #pod.spec.containers)
    local container = pod.spec.containers[1]
    assert.equal("busybox", container.name)
    assert.equal("busybox", container.image)
    assert.same({ "echo", "one", "two", "three" }, container.command)
    assert.equal(1, #pod.metadata.ownerReferences)
    local owner = pod.metadata.ownerReferences[1]
    assert.equal("cnat.programming-kubernetes.info/v1alpha1", owner.apiVersion)
    assert.equal("At", owner.kind)
    assert.equal("owner", owner.name)
    assert.equal(at.metadata.uid, owner.uid)
    assert.is_true(owner.controller)
  end)

  it("shows its schedule, phase and age in kubectl", function()
    cluster.at(ns, "columns", cluster.PAST)
    cluster.till_phase(ns, "columns", "DONE")
    local head, row = kubectl.run("get", "at", "columns", "--namespace", ns):match("([^\n]+)\n([^\n]+)")
    assert.matches("^NAME%s+SCHEDULE%s+PHASE%s+AGE%s*$", head)
    assert.matches("^columns%s+2020%-01%-01T00:00:00Z%s+DONE%s+%d+s%s*$", row)
  end)

  it("takes its pod along when it is deleted", function()
    cluster.at(ns, "leaving", cluster.PAST, "sleep 600")
    cluster.till_phase(ns, "leaving", "RUNNING")
    api.delete("At", ns, "leaving")
    wait.till("its pod to go", 30, function()
      return not api.get("Pod", ns, "leaving-pod"), "still there"
    end)
  end)

  it("that is deleted before its instant never has a pod", function()
    local due = os.time() + 2
    cluster.at(ns, "recalled", os.date("!%Y-%m-%dT%H:%M:%SZ", due))
    cluster.till_phase(ns, "recalled", "PENDING")
    api.delete("At", ns, "recalled")
    wait.holds("no pod", due + 1 - wait.now(), function()
      return not api.get("Pod", ns, "recalled-pod"), "a pod"
    end)
  end)

  it("runs at its new instant when its schedule is changed", function()
    cluster.at(ns, "moved", "2099-01-01T00:00:00Z")
    cluster.till_phase(ns, "moved", "PENDING")
    api.patch("At", ns, "moved", { spec = { schedule = cluster.PAST } })
    cluster.till_phase(ns, "moved", "DONE", 5)
  end)

  it("that is DONE stays so when its pod goes", function()
    cluster.at(ns, "final", cluster.PAST)
    cluster.till_phase(ns, "final", "DONE")
    api.delete("Pod", ns, "final-pod")
    wait.holds("no new pod", 1, function()
      return not api.get("Pod", ns, "final-pod"), "a pod"
    end)
  end)
end)


describe("Many Ats", function()
  local ns, mark

  before_each(function()
    ns = cluster.namespace "many"
    mark = audit.available and audit.mark()
    host.start({ name = "many", scripts = "reconcilers/cnat.lua", namespaces = ns }):till_ready()
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function create(count, schedule)
    for index = 1, count do
      cluster.at(ns, ("at-%03d"):format(index), schedule)
    end
  end

  -- The host's writes, by At: { pod = when its pod was asked for, statuses = { when, … }, writes = n }
  local function writes_by_at()
    local by_at = {}
    for _, event in ipairs(audit.since(mark, { ns = ns, writes = true, by_moonloop = true })) do
      local name = event.objectRef.name or event.objectRef.resource
      local at = name:gsub("%-pod$", "")
      local entry = by_at[at] or { statuses = {}, writes = 0 }
      by_at[at] = entry
      entry.writes = entry.writes + 1
      if event.objectRef.resource == "pods" then
        entry.pod = audit.received(event)
      else
        table.insert(entry.statuses, audit.received(event))
      end
    end
    return by_at
  end

  -- When the server was asked to make each At.
  local function made_at()
    local made = {}
    for _, event in ipairs(audit.since(mark, { ns = ns, resource = "ats", verb = "create", code = 201 })) do
      made[event.objectRef.name] = audit.received(event)
    end
    return made
  end

  local function assert_one_pod_each(count)
    judge.one_pod_each(mark, ns, count)
    local _, creations = audit.pods_created(mark, ns)
    assert.equal(count, creations)
  end

  -- The first status of an At that waits says PENDING: sent before the instant, it may be received after it.
  local function assert_writes(count, most, due)
    local seen, made = 0, made_at()
    for name, entry in pairs(writes_by_at()) do
      seen = seen + 1
      assert.is_true(entry.writes <= most, ("%s: %d writes"):format(name, entry.writes))
      for index, at in ipairs(entry.statuses) do
        local is_pending = index == 1 and made[name] < due
        assert.is_true(is_pending or entry.pod < at, name .. ": its status is written before its pod is made")
      end
    end
    assert.equal(count, seen)
  end

  audited("due at once have one pod each, made before any status is written, in four writes", function()
    local due = os.time() + 4
    create(200, os.date("!%Y-%m-%dT%H:%M:%SZ", due))
    cluster.till_done(ns, 200)
    assert_one_pod_each(200)
    assert_writes(200, 4, due)
  end)

  audited("due already have one pod each, in three writes", function()
    create(100, cluster.PAST)
    cluster.till_done(ns, 100)
    assert_one_pod_each(100)
    assert_writes(100, 3, 0)
  end)
end)
