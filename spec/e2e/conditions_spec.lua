-- Conditions: those that a script returns, and Reconciled, by which the host shows that a reconcile failed.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

-- cnat that fails for the command "fail", and is Ready when it is done.
local function cnat()
  local text = scripts.edited(scripts.cnat, "    local instant, why = due(", [[
    assert(at.spec.command ~= "fail", "cannot do that")
    local instant, why = due(]])
  return scripts.edited(text, 'return { status = { phase = finished(pod) and "DONE" or "RUNNING" } }', [[
    return {
      status = { phase = finished(pod) and "DONE" or "RUNNING" },
      conditions = { Ready = { status = finished(pod), reason = finished(pod) and "Finished" or "Running" } },
    }]])
end


local PLAIN = [[
local moonloop = require "moonloop"

return moonloop.controller {
  name = "plain",
  reconciles = moonloop.kind("e2e.moonloop.dev/v1", "Plain"),
  wakes = "all",
  reconcile = function(plain)
    assert(plain.spec.say ~= "fail", "cannot say that")
    local status = { said = plain.spec.say }
    status["say" .. "d"] = plain.spec.say -- a name that is put together is not checked
    return { status = status }
  end,
}
]]

describe("Conditions", function()
  local ns, moonloop

  setup(function()
    cluster.install("spec/e2e/fixtures/plains.yaml", "plains.e2e.moonloop.dev")
    ns = cluster.namespace "conditions"
    moonloop = host.start {
      name = "conditions", namespaces = ns,
      scripts = scripts.folder { ["cnat.lua"] = cnat(), ["plain.lua"] = PLAIN },
    }
    moonloop:till_ready()
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function till_condition(name, condition_type, status)
    return cluster.till_condition("At", ns, name, condition_type, status)
  end

  it("that a script returns are on the object, and kubectl waits for them", function()
    cluster.at(ns, "ready", cluster.PAST)
    kubectl.run("wait", "--namespace", ns, "--for=condition=Ready", "--timeout=30s", "at/ready")
    local at = api.get("At", ns, "ready")
    local ready = cluster.condition(at, "Ready")
    assert.equal("Finished", ready.reason)
    assert.equal("", ready.message)
    assert.equal(at.metadata.generation, ready.observedGeneration)
    assert.matches("^%d+%-%d+%-%d+T", ready.lastTransitionTime)
    assert.is_nil(cluster.condition(at, "Reconciled"))
  end)

  it("say that a reconcile fails, with one write, and that it is well again", function()
    cluster.at(ns, "fails", cluster.PAST, "fail")
    local failed = till_condition("fails", "Reconciled", "False")
    assert.equal("ReconcileFailed", failed.reason)
    assert.matches("^cnat: cnat%.lua:%d+: cannot do that$", failed.message)
    cluster.till_event(ns, "At", "fails", "ReconcileFailed", "cannot do that")
    kubectl.run("wait", "--namespace", ns, "--for=condition=Reconciled=false", "--timeout=5s", "at/fails")
    local version = api.get("At", ns, "fails").metadata.resourceVersion
    wait.holds("the version of the At", 3, function()
      local now = api.get("At", ns, "fails").metadata.resourceVersion
      return now == version, now
    end)
    api.patch("At", ns, "fails", { spec = { command = "echo YAY" } })
    cluster.till_phase(ns, "fails", "DONE")
    local well = till_condition("fails", "Reconciled", "True")
    assert.equal(2, well.observedGeneration)
    assert.is_true(well.lastTransitionTime >= failed.lastTransitionTime)
    till_condition("fails", "Ready", "True")
  end)

  it("outlive the host: what it finds said it does not say again, and takes back", function()
    cluster.at(ns, "outlives", cluster.PAST, "fail")
    till_condition("outlives", "Reconciled", "False")
    local version = api.get("At", ns, "outlives").metadata.resourceVersion
    moonloop:stop()
    moonloop = host.start {
      name = "conditions-again", namespaces = ns,
      scripts = scripts.folder { ["cnat.lua"] = cnat(), ["plain.lua"] = PLAIN },
    }
    moonloop:till_log { level = "error", msg = "reconcile failed", name = "outlives" }
    wait.pass(0.5)
    assert.equal(version, api.get("At", ns, "outlives").metadata.resourceVersion)
    api.patch("At", ns, "outlives", { spec = { command = "echo YAY" } })
    till_condition("outlives", "Reconciled", "True")
  end)

  it("that the schema lacks are tried once, and cost the script nothing", function()
    for _, name in ipairs { "one", "two" } do
      api.create("Plain", ns, { metadata = { name = name }, spec = { say = "fail" } })
      cluster.till_event(ns, "Plain", name, "ReconcileFailed", "cannot say that")
    end
    assert.equal(1, #moonloop:lines { msg = "the kind has no status.conditions" })
    api.patch("Plain", ns, "one", { spec = { say = "hello" } })
    wait.till("the status of Plain one", 10, function()
      local status = api.get("Plain", ns, "one").status
      return status and status.said == "hello"
    end)
    assert.is_nil(api.get("Plain", ns, "one").status.conditions)
  end)

  it("are not alone in that: a field that the schema lacks is named, and not written at each run", function()
    local function till_said(text)
      wait.till("the status of Plain typo", 10, function()
        local status = api.get("Plain", ns, "typo").status
        return status and status.said == text
      end)
    end
    local mark = audit.available and audit.mark()
    api.create("Plain", ns, { metadata = { name = "typo" }, spec = { say = "hello" } })
    -- The controller says it for the first object that it happens to, which may be another spec's.
    local seen = moonloop:till_log { level = "warn", msg = "the API server does not keep what the script returned" }
    assert.matches("leaves out status%.sayd, which the schema of Plain does not have", seen.error)
    cluster.till_event(ns, "Plain", seen.name, "StatusNotKept", "correct the name in plain.lua, or add the field")
    -- Two changes that are reconciled in one run would be one write.
    till_said "hello"
    for index = 1, 5 do
      api.patch("Plain", ns, "typo", { spec = { say = "hello " .. index } })
      till_said("hello " .. index)
      api.patch("Plain", ns, "typo", { metadata = { labels = { index = tostring(index) } } })
    end
    local function writes()
      return #audit.since(mark, { ns = ns, resource = "plains", subresource = "status", name = "typo" })
    end
    if mark then
      wait.till("all writes in the audit log", 10, function()
        return writes() >= 1 + 5, writes()
      end)
    end
    wait.pass(0.5)
    if mark then
      assert.equal(1 + 5, writes())
    end
    assert.equal(1, #moonloop:lines { msg = "the API server does not keep what the script returned" })
  end)
end)
