-- The functions that `moonloop test` offers to tests of scripts: docs/testing.md.
local cjson = require "cjson"
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")
local Pod = moonloop.kind("v1", "Pod")
local START = 1782900000 -- 2026-07-01T10:00:00Z

local function thing(name, mode)
  return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
end


local function pod(name, policy)
  return {
    apiVersion = "v1", kind = "Pod", metadata = { name = name },
    spec = { restartPolicy = policy, containers = { { name = "c", image = "busybox", command = { "true" } } } },
  }
end


-- Calls `fn`, which must fail; returns the message.
local function failure_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok, "nothing failed")
  return tostring(message)
end


describe("A world", function()
  local world

  before_each(function()
    world = testing.world { now = "2026-07-01T10:00:00Z" }
  end)

  it("gives each object a uid of its own", function()
    local seen = {}
    for i = 1, 9 do
      world.apply(thing("a" .. i, "nothing"))
    end
    for _, kind in ipairs { "Namespace", "ServiceAccount", "ConfigMap" } do
      for _, object in ipairs(world.list(moonloop.kind("v1", kind))) do
        seen[object.metadata.uid] = kind
      end
    end
    for _, object in ipairs(world.list(Thing)) do
      assert.is_nil(seen[object.metadata.uid])
      seen[object.metadata.uid] = "Thing"
    end
  end)

  it("begins at the time it was given, and moves it only when told", function()
    assert.equal(START, world.now())
    world.apply(thing("a", "make"))
    assert.equal(START, world.now())
    world.advance "1m30s"
    assert.equal(START + 90, world.now())
    world.advance(20)
    assert.equal(START + 110, world.now())
    world.advance(0.5)
    assert.equal(START + 110.5, world.now())
  end)

  it("takes no other time to advance by, and says what it takes", function()
    for _, seconds in ipairs { -1, 0 / 0, math.huge } do
      assert.equal('world.advance("5m"): expected seconds from 0 to 1000000000', failure_of(world.advance, seconds))
    end
    assert.equal('world.advance("5m"): expected a duration like 5m30s, with the units h, m, s, ms',
      failure_of(world.advance, "5 minutes"))
    assert.matches("duration: expected a string or a number, got a table$", failure_of(world.advance, {}))
    assert.equal(START, world.now())
  end)

  it("stops wherever a reconcile asked to come back", function()
    world.apply(thing("a", "tick"))
    world.advance "90s"
    world.expect(Thing, "a", { status = { at = START + 60 } })
  end)

  it("applies objects, lists of them, and YAML", function()
    world.apply { thing("a"), thing("b") }
    world.apply("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: c, labels: {x: \"y\"}}\n"
      .. "---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: d}\n")
    assert.equal(4, #world.list(Thing))
    assert.equal("c", world.list(Thing, "x=y")[1].metadata.name)
  end)

  it("passes on what the server has against an object", function()
    assert.truthy(failure_of(world.apply, thing "Not_A_Name"):find("metadata.name: Invalid value", 1, true))
    assert.truthy(failure_of(world.apply, { apiVersion = "x/v1", kind = "Y", metadata = { name = "z" } })
      :find("no kind Y in x/v1", 1, true))
  end)

  it("removes what an object owned along with it", function()
    world.apply(thing("a", "make"))
    world.expect(Secret, "s", { metadata = { ownerReferences = { { name = "a" } } } })
    world.delete(Thing, "a")
    world.expect(Secret, "s", false)
  end)

  it("patches objects, and their status apart from them", function()
    world.apply(thing "a")
    world.patch(Thing, "a", { metadata = { labels = { x = "y" } }, status = { ignored = true } })
    world.patch(Thing, "a", { status = { phase = "Odd" } }, "status")
    local object = world.get(Thing, "a")
    assert.equal("y", object.metadata.labels.x)
    assert.same({ phase = "Odd" }, object.status)
  end)

  it("removes a field that is patched with null, whichever module it is of", function()
    for _, null in ipairs { moonloop.null, cjson.null } do
      world.apply(thing("a", "nothing"))
      world.patch(Thing, "a", { spec = { mode = null } })
      assert.same({}, world.get(Thing, "a").spec)
    end
  end)

  it("shows how an object differs from what was expected", function()
    world.apply(thing("a", "make"))
    local message = failure_of(world.expect, Thing, "a", { spec = { mode = "tick" }, status = { made = true } })
    assert.truthy(message:find('Thing a is not as expected', 1, true))
    assert.truthy(message:find('  spec.mode\n    - "tick"\n    + "make"', 1, true), message)
    assert.is_nil(message:find("status", 1, true))
    assert.truthy(failure_of(world.expect, Thing, "b", {}):find("Thing b should be there", 1, true))
    assert.truthy(failure_of(world.expect, Thing, "a", false):find("Thing a should not be there", 1, true))
  end)

  it("says so when a script never comes to rest", function()
    local message = failure_of(world.apply, thing("a", "restless"))
    assert.truthy(message:find("no end after", 1, true), message)
    assert.truthy(message:find("/configmaps/a", 1, true), message)
  end)

  it("tells the Events of an object", function()
    world.apply { thing("a", "invalid"), thing("b", "undeclared") }
    world.advance "1s"
    assert.same({ "Warning", "Invalid", "spec.mode: no mode to be in" }, {
      world.events(Thing, "a")[1].type, world.events(Thing, "a")[1].reason, world.events(Thing, "a")[1].note,
    })
    assert.truthy(world.events(Thing, "b")[1].note:find("Node v1 is not declared", 1, true))
    for _, event in ipairs(world.list(moonloop.kind("v1", "Event"))) do
      assert.equal("thing", event.reportingComponent)
    end
  end)

  it("tells the Events of a script apart from those of the cluster", function()
    world.apply { thing("a", "invalid"), pod("p", "Never") }
    world.advance "1s"
    local by = {}
    for _, event in ipairs(world.events()) do
      by[event.by] = (by[event.by] or 0) + 1
    end
    assert.is_true(by.kubelet > 0 and by["default-scheduler"] == 1)
    local own = world.events(nil, nil, "thing")
    assert.same({ by.thing, "Invalid", "a", "thing" }, { #own, own[1].reason, own[1].name, own[1].by })
    assert.same({}, world.events(Pod, "p", "thing"))
    assert.equal(by.kubelet, #world.events(Pod, "p", "kubelet"))
  end)

  it("ends when the next one begins", function()
    testing.world {}
    assert.truthy(failure_of(world.settle):find("this world has ended", 1, true))
  end)

  it("is the same each time", function()
    world.apply(thing("a", "make"))
    local uid = world.get(Secret, "s").metadata.uid
    world = testing.world { now = "2026-07-01T10:00:00Z" }
    world.apply(thing("a", "make"))
    assert.equal(uid, world.get(Secret, "s").metadata.uid)
  end)
end)


describe("An operator in a world", function()
  it("does not ask for an object whose namesake has gone with its children", function()
    local world = testing.world {}
    world.apply(thing("a", "make"))
    world.delete(Thing, "a")
    world.expect(Secret, "s", false)
    world.apply(thing("a", "make"))
    world.expect(Secret, "s", { metadata = { name = "s" } })
    assert.equal(0, #world.requests("get", "/things/a"))
  end)
end)


describe("Pods of a world", function()
  it("run until they are told how to end", function()
    local world = testing.world {}
    world.apply { pod("once", "Never"), pod("again", "OnFailure") }
    world.expect(Pod, "once", { status = { phase = "Running" } })
    world.finish_pod("once", "Failed")
    world.expect(Pod, "once", { status = { phase = "Failed" } })
    world.finish_pod("again", 3)
    world.expect(Pod, "again", { status = { phase = "Running", containerStatuses = { { restartCount = 1 } } } })
    world.finish_pod "again"
    world.expect(Pod, "again", { status = { phase = "Succeeded" } })
    assert.truthy(failure_of(world.finish_pod, "again"):find("no container of pod again runs", 1, true))
  end)

  it("have the habit that the world gives them", function()
    local world = testing.world { pods = "succeed" }
    world.apply(pod("p", "Never"))
    world.expect(Pod, "p", { status = { phase = "Succeeded" } })
    world = testing.world { pods = function() return { after = 60, code = 1 } end }
    world.apply(pod("p", "Never"))
    world.advance "59s"
    world.expect(Pod, "p", { status = { phase = "Running" } })
    world.advance "1s"
    world.expect(Pod, "p", { status = { phase = "Failed" } })
  end)
end)


describe("A rule for pods", function()
  local Deployment = moonloop.kind("apps/v1", "Deployment")
  local Job = moonloop.kind("batch/v1", "Job")
  local world

  before_each(function()
    world = testing.world { now = "2026-07-01T10:00:00Z" }
  end)

  local function template(probe)
    local container = { name = "c", image = "busybox", readinessProbe = probe }
    return { metadata = { labels = { app = "web" } }, spec = { containers = { container } } }
  end

  local function deployment(probe)
    return {
      apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "web" },
      spec = { replicas = 2, selector = { matchLabels = { app = "web" } }, template = template(probe) },
    }
  end

  local function job()
    local once = template()
    once.spec.restartPolicy = "Never"
    return {
      apiVersion = "batch/v1", kind = "Job", metadata = { name = "j" }, spec = { template = once, backoffLimit = 5 },
    }
  end

  local function ready()
    return world.get(Deployment, "web").status.readyReplicas or 0
  end

  it("lets a Deployment's pods be ready after a time, to the instant", function()
    world.pods { matching = "app=web", ready_after = 20 }
    world.apply(deployment())
    assert.equal("Pending", world.list(Pod)[1].status.phase)
    world.advance(19.9)
    assert.equal(0, ready())
    world.advance(0.2)
    assert.equal(2, ready())
    world.expect(Deployment, "web", { status = { availableReplicas = 2 } })
  end)

  it("lets a readiness probe fail until then", function()
    world.pods { ready_after = 25 }
    world.apply(deployment { httpGet = { path = "/", port = 80 }, periodSeconds = 10 })
    assert.equal("Running", world.list(Pod)[1].status.phase)
    world.advance(24)
    assert.equal(0, ready())
    world.advance(1.1)
    assert.equal(2, ready())
  end)

  it("counts for pods that match, the last one first, and may be changed", function()
    world.pods { ready_after = false }
    world.pods { matching = "app!=web", ready_after = 0 }
    world.apply { deployment(), pod("other", "Never") }
    world.advance "1h"
    assert.equal(0, ready())
    world.expect(Pod, "other", { status = { phase = "Running" } })
    local one = world.list(Pod, "app=web")[1].metadata.name
    world.pods { name = one, ready_after = 0 }
    assert.equal(1, ready())
    world.pods { ready_after = 5 }
    world.advance(5)
    assert.equal(2, ready())
  end)

  it("lets a pod wait that is deleted meanwhile", function()
    world.pods { ready_after = false }
    world.apply(deployment())
    world.delete(Deployment, "web")
    world.advance "1m"
    world.pods { ready_after = 0 }
    assert.same({}, world.list(Pod))
  end)

  it("lets a Job's pods fail with a code, so often, and take their time", function()
    world.pods { exit_after = 60 }
    world.pods { exit_code = 3, exit_after = 5, times = 2 }
    world.apply(job())
    world.advance(5)
    local failed = world.list(Pod)[1].status
    assert.same({ "Failed", 3 }, { failed.phase, failed.containerStatuses[1].state.terminated.exitCode })
    world.advance "2m"
    world.expect(Job, "j", { status = { failed = 2, succeeded = 1 } })
    world.expect(Job, "j", { status = { conditions = { { type = "SuccessCriteriaMet" }, { type = "Complete" } } } })
  end)

  it("leaves open whatever it does not say", function()
    world = testing.world { pods = "succeed" }
    world.pods { ready_after = 10 }
    world.apply(pod("p", "Never"))
    world.expect(Pod, "p", { status = { phase = "Pending" } })
    world.advance(10)
    world.expect(Pod, "p", { status = { phase = "Succeeded" } })
  end)

  it("is refused when it is none", function()
    local cases = {
      ["exit_code: expected 0 to 255"] = { exit_code = 256 },
      ["exit_after: expected 0 or more"] = { exit_after = -1 },
      ["ready_after: expected 0 or more"] = { ready_after = 0 / 0 },
      ["ready_after: expected a number or false, got true"] = { ready_after = true },
      ["unknown field 'selector'; the fields are matching, name, ready_after, exit_code, exit_after, times"] = {
        selector = "a",
      },
    }
    for why, rule in pairs(cases) do
      assert.equal("world.pods(rule): " .. why, failure_of(world.pods, rule))
    end
    assert.matches("^world%.pods%(rule%): matching: .*found '='", failure_of(world.pods, { matching = "a in =" }))
  end)
end)


describe("Settling a world", function()
  local world

  before_each(function()
    world = testing.world { now = "2026-07-01T10:00:00Z" }
  end)

  it("lets conflicts be tried again, and needs no guess for how long", function()
    world.fault("conflict", { verb = "create", kind = Secret, times = 3 })
    world.apply(thing("a", "make"))
    world.expect(Secret, "s", false)
    assert.equal(START, world.now())
    assert.same({}, world.settle())
    world.expect(Thing, "a", { status = { made = true } })
    assert.is_true(world.now() > START + 0.034 and world.now() < START + 0.036, world.now()) -- 5 + 10 + 20 ms
  end)

  it("moves no clock when nothing is to be tried again", function()
    world.apply(thing("a", "tick"))
    local list = world.settle()
    assert.equal(START, world.now())
    assert.same({ {
      controller = "thing", kind = "Thing", namespace = "default", name = "a", state = "due", at = START + 60,
      failures = 0, why = "its last run asked to be called again",
    } }, list)
    world = testing.world { now = START + 59.5 }
    world.apply(thing("a", "tick"))
    assert.equal(START + 60, world.settle()[1].at)
    assert.equal(START + 59.5, world.now())
  end)

  it("tells the objects that fail on, why, and until when", function()
    local heal = world.fault("internal_error", { verb = "create", kind = Secret, times = 1000 })
    world.apply { thing("a", "make"), thing("b", "tick") }
    local list = world.settle()
    assert.is_true(world.now() <= START + 1)
    assert.same({ "a", "b" }, { list[1].name, list[2].name })
    assert.same({ "fails", 8 }, { list[1].state, list[1].failures })
    assert.is_true(list[1].at > START + 1 and list[1].at < START + 1.3, list[1].at)
    assert.matches("create Secret default/s", list[1].error)
    heal()
    assert.equal("b", world.settle()[1].name)
    world.expect(Thing, "a", { status = { made = true } })
  end)

  it("is the same each time", function()
    local function play()
      world = testing.world { now = "2026-07-01T10:00:00Z" }
      world.fault("unavailable", { verb = "create", kind = Secret, times = 1000 })
      world.apply(thing("a", "make"))
      return { world.settle(), world.now(), #world.requests() }
    end
    assert.same(play(), play())
  end)

  it("shows in a failed expectation what still waits", function()
    world.fault("conflict", { verb = "create", kind = Secret })
    world.apply(thing("a", "make"))
    local waits = "\nstill waiting:\n  Thing default/a: it failed, and is tried again, in 0%.005 s: create Secret"
    assert.matches("^Thing a is not as expected.*" .. waits, failure_of(world.expect, Thing, "a", { status = {} }))
    assert.matches("^Secret s should be there, and is not" .. waits, failure_of(world.expect, Secret, "s", {}))
    for i = 1, 9 do
      world.apply(thing("t" .. i, "tick"))
    end
    assert.matches("\n  and 5 more$", failure_of(world.expect, Secret, "s", {}))
    testing.world {}
  end)
end)


describe("Faults of a world", function()
  local world

  before_each(function()
    world = testing.world {}
  end)

  it("strike the requests that are meant, as often as is meant", function()
    world.fault("unavailable", { verb = "create", kind = Secret, times = 2 })
    world.apply(thing("a", "make"))
    world.advance "1m"
    world.expect(Thing, "a", { status = { made = true } })
    assert.equal(1, #world.requests("create", "/secrets"))
  end)

  it("last until they are healed", function()
    local heal = world.fault "stale_cache"
    world.apply(thing("a", "make"))
    world.advance "1s"
    world.expect(Secret, "s", false)
    heal()
    world.expect(Secret, "s", {})
  end)

  it("have names", function()
    assert.matches('name: expected "conflict", "forbidden",.* got "flood"', failure_of(world.fault, "flood"))
    assert.matches('verb: expected "create",.* got "eat"', failure_of(world.fault, "conflict", { verb = "eat" }))
  end)

  it("may be the death of the operator", function()
    world.apply(thing("a", "make"))
    world.restart()
    world.delete(Secret, "s")
    world.expect(Secret, "s", {})
  end)
end)
