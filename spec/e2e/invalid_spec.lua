-- A schedule that cannot be: the user sees why, nothing spins, and the correction is picked up.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local wait = require "spec.e2e.support.wait"

local BAD = {
  ["no-instant"] = "tomorrow",
  ["no-such-day"] = "2026-02-30T00:00:00Z",
  ["no-such-month"] = "2026-13-01T00:00:00Z",
  ["no-such-hour"] = "2026-01-01T24:00:00Z",
  ["no-zone"] = "2026-01-01T00:00:00",
  ["more-behind"] = "2026-01-01T00:00:00Z please",
  ["date-only"] = "2026-01-01",
  ["one-space"] = " ",
  ["huge"] = ("9"):rep(5000),
}

describe("An At with a bad schedule", function()
  local ns, moonloop

  setup(function()
    ns = cluster.namespace "invalid"
    moonloop = host.start { name = "invalid", scripts = "reconcilers/cnat.lua", namespaces = ns }
    moonloop:till_ready()
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function till_invalid(name)
    return cluster.till_condition("At", ns, name, "Reconciled", "False", nil, 10)
  end

  for name, schedule in pairs(BAD) do
    it(("(%s) has an Event, a condition and a log line"):format(name), function()
      cluster.at(ns, name, schedule)
      local valid = till_invalid(name)
      assert.matches("^cnat: spec%.schedule: ", valid.message)
      assert.equal("Invalid", valid.reason)
      assert.equal(1, valid.observedGeneration)
      local event = cluster.till_event(ns, "At", name, "Invalid", "spec.schedule: ")
      assert.equal("Warning", event.type)
      assert.equal(api.get("At", ns, name).metadata.uid, event.regarding.uid)
      moonloop:till_log { level = "error", msg = "object is invalid", namespace = ns, name = name }
      assert.is_nil(api.get("Pod", ns, name .. "-pod"))
    end)
  end

  it("costs no hot loop", function()
    cluster.at(ns, "patient", "never")
    till_invalid "patient"
    cluster.till_event(ns, "At", "patient", "Invalid")
    local function count()
      return moonloop:metric "controller_runtime_reconcile_total"
    end
    -- Its own status write may come back once, however late.
    local before = count()
    wait.holds("at most one more reconcile", 4, function()
      return count() - before <= 1, count()
    end)
    assert.is_true(#moonloop:lines { msg = "object is invalid", name = "patient" } <= 2)
  end)

  it("runs as soon as it is corrected, and its condition flips back", function()
    cluster.at(ns, "corrected", "soon")
    local before = till_invalid "corrected"
    local begun = wait.now()
    api.patch("At", ns, "corrected", { spec = { schedule = cluster.PAST } })
    cluster.till_pod(ns, "corrected-pod", 2)
    assert.is_true(wait.now() - begun < wait.patient(1))
    local at = cluster.till_phase(ns, "corrected", "DONE")
    local valid = cluster.condition(at, "Reconciled")
    assert.equal("True", valid.status)
    assert.equal(2, valid.observedGeneration)
    assert.is_true(valid.lastTransitionTime >= before.lastTransitionTime)
  end)

  it("that was fine before waits again", function()
    cluster.at(ns, "spoiled", "2099-01-01T00:00:00Z")
    cluster.till_phase(ns, "spoiled", "PENDING")
    api.patch("At", ns, "spoiled", { spec = { schedule = "2099-99-99T00:00:00Z" } })
    till_invalid "spoiled"
    assert.is_nil(api.get("Pod", ns, "spoiled-pod"))
  end)

  it("harms no other", function()
    cluster.at(ns, "bystander", cluster.PAST)
    cluster.till_phase(ns, "bystander", "DONE", 5)
  end)
end)
