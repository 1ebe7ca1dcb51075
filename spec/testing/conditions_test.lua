-- Conditions in a world: those that a script returns, and the host's own, Reconciled.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Site = moonloop.kind("example.com/v1", "Site")
local Work = moonloop.kind("example.com/v1", "Work")
local Plain = moonloop.kind("example.com/v1", "Plain")
local Pod = moonloop.kind("v1", "Pod")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function world_of(...)
  local scripts = {}
  for index, name in ipairs { ... } do
    scripts[index] = ("spec/testing/conditions/%s.lua"):format(name)
  end
  return testing.world { scripts = scripts, crds = "spec/testing/conditions/crds", now = "2026-07-01T10:00:00Z" }
end


local function object(kind, mode)
  return { apiVersion = kind.apiVersion, kind = kind.kind, metadata = { name = "a" }, spec = { mode = mode } }
end


local function condition(world, kind, type_name)
  for _, one in ipairs((world.get(kind, "a").status or {}).conditions or {}) do
    if one.type == type_name then
      return one
    end
  end
end


local function status_writes(world)
  return #world.requests("patch", "/status")
end


describe("Conditions that a script returns", function()
  it("are kept as the API wants them: the example of docs/reconciling.md", function()
    local file = assert(io.open "docs/reconciling.md")
    local docs = file:read "a"
    file:close()
    file = assert(io.open "spec/testing/conditions/site.lua")
    assert.truthy(docs:find(file:read "a", 1, true), "site.lua is not the example of the docs")
    file:close()

    local world = world_of "site"
    world.apply(object(Site))
    local ready = condition(world, Site, "Ready")
    assert.same({
      type = "Ready", status = "False", reason = "NoPage", message = "", observedGeneration = 1,
      lastTransitionTime = "2026-07-01T10:00:00Z",
    }, ready)
    assert.is_nil(condition(world, Site, "Large"))
    assert.equal(1, world.get(Site, "a").status.observedGeneration)

    world.patch(Site, "a", { status = { conditions = {
      { type = "Theirs", status = "True", reason = "R", message = "", lastTransitionTime = "2026-01-01T00:00:00Z" },
      ready,
    } } }, "status")
    world.advance "1m"
    world.apply {
      apiVersion = "v1", kind = "ConfigMap", data = { html = "x" },
      metadata = { name = "a-page", ownerReferences = { {
        apiVersion = Site.apiVersion, kind = Site.kind, name = "a", uid = world.get(Site, "a").metadata.uid,
        controller = true,
      } } },
    }
    local list = world.get(Site, "a").status.conditions
    assert.same({ "Theirs", "Ready", "Large" }, { list[1].type, list[2].type, list[3].type })
    assert.equal("2026-01-01T00:00:00Z", list[1].lastTransitionTime)
    assert.same({ "True", "PageThere", "2026-07-01T10:01:00Z" },
      { list[2].status, list[2].reason, list[2].lastTransitionTime })
    assert.same({ "False", "Large" }, { list[3].status, list[3].reason })

    local before = status_writes(world)
    world.advance "1h"
    world.patch(Site, "a", { metadata = { labels = { x = "y" } } })
    assert.equal(before, status_writes(world))
  end)
end)


describe("A reconcile that fails", function()
  local FAILURES = {
    boom = { "ReconcileFailed", "^work: work%.lua:%d+: boom at " },
    refused = { "ReconcileFailed", "^work: work%.lua:%d+: .*Upper" },
    odd = { "ReconcileFailed", "^work: write status: .*Unsupported value: \"ODD\"" },
    invalid = { "Invalid", "^work: spec%.mode: not that one$" },
    terminal = { "Failed", "^work: never$" },
  }

  for mode, failure in pairs(FAILURES) do
    it(("(%s) is told by its object, once, and taken back"):format(mode), function()
      local world = world_of "work"
      world.apply(object(Work, mode))
      local said = condition(world, Work, "Reconciled")
      assert.equal("False", said.status)
      assert.equal(failure[1], said.reason)
      assert.matches(failure[2], said.message)
      assert.equal(1, said.observedGeneration)
      assert.equal("2026-07-01T10:00:00Z", said.lastTransitionTime)
      local revision = world.get(Work, "a").metadata.resourceVersion
      world.advance "2h"
      world.restart()
      world.advance "2h"
      assert.equal(revision, world.get(Work, "a").metadata.resourceVersion)

      world.patch(Work, "a", { spec = { mode = "fine" } })
      world.advance "20m"
      said = condition(world, Work, "Reconciled")
      assert.same({ "True", "Reconciled", "", 2 },
        { said.status, said.reason, said.message, said.observedGeneration })
      world.expect(Work, "a", { status = { phase = "FINE" } })
    end)
  end

  it("has written what was returned beside its verdict, in the same write", function()
    local world = world_of "work"
    world.apply(object(Work, "invalid"))
    world.expect(Work, "a", { status = { phase = "BAD" } })
    assert.equal(1, status_writes(world))
    world.patch(Work, "a", { spec = { mode = "terminal" } })
    assert.equal("Never", condition(world, Work, "Ready").reason)
    assert.equal(2, status_writes(world))
  end)

  it("leaves no trace on objects whose reconciles are good", function()
    local world = world_of "work"
    world.apply(object(Work, "fine"))
    assert.is_nil(world.get(Work, "a").status.conditions)
    assert.equal(1, status_writes(world))
  end)

  it("leaves no trace when the server is at fault", function()
    local world = world_of "work"
    for _, fault in ipairs { "conflict", "unavailable", "lost_reply", "timeout" } do
      world.fault(fault, { verb = "patch", kind = Work })
    end
    world.apply(object(Work, "fine"))
    world.advance "10m"
    world.expect(Work, "a", { status = { phase = "FINE" } })
    assert.is_nil(world.get(Work, "a").status.conditions)
  end)

  -- Of the last Event with this reason; nil: there is none.
  local function noted(world, reason)
    local last
    for _, event in ipairs(world.events(Work, "a")) do
      last = event.reason == reason and event or last
    end
    return last
  end

  local LASTING = {
    "conflict", "unavailable", "too_many_requests", "timeout", "lost_request", "internal_error",
  }

  for _, fault in ipairs(LASTING) do
    it(("for a reason that lasts (%s) tells so after five seconds, and when that is over"):format(fault), function()
      local world = world_of "work"
      local heal = world.fault(fault, { verb = "patch", kind = ConfigMap, times = 1000000 })
      world.apply(object(Work, "applies"))
      world.advance "4s"
      assert.is_nil(condition(world, Work, "Reconciled"))
      assert.is_nil(noted(world, "ReconcileFailed"))
      world.advance(fault == "timeout" and "2m" or "16s")
      local said = condition(world, Work, "Reconciled")
      assert.same({ "False", "ReconcileFailed" }, { said.status, said.reason })
      assert.matches("apply ConfigMap default/a", said.message)
      assert.matches("apply ConfigMap default/a", noted(world, "ReconcileFailed").note)
      local revision = world.get(Work, "a").metadata.resourceVersion
      world.advance "1h"
      assert.equal(revision, world.get(Work, "a").metadata.resourceVersion)

      assert.is_nil(noted(world, "Reconciled"))
      heal()
      world.advance "20m"
      assert.equal("True", condition(world, Work, "Reconciled").status)
      assert.equal("Normal", noted(world, "Reconciled").type)
      world.advance "1h"
    end)
  end

  for _, fault in ipairs { "conflict", "unavailable", "too_many_requests", "forbidden", "internal_error" } do
    it(("in the write of its status (%s) has an Event all the same"):format(fault), function()
      local world = world_of "work"
      local heal = world.fault(fault, { verb = "patch", kind = Work, times = 1000000 })
      world.apply(object(Work, "fine"))
      world.advance "20s"
      assert.is_nil(world.get(Work, "a").status)
      assert.matches("^write status: ", noted(world, "ReconcileFailed").note)
      heal()
      world.advance "20m"
      world.expect(Work, "a", { status = { phase = "FINE" } })
      assert.equal("Normal", noted(world, "Reconciled").type)
    end)
  end

  local function fifty_works()
    local list = {}
    for index = 1, 50 do
      list[index] = {
        apiVersion = Work.apiVersion, kind = Work.kind, metadata = { name = "w" .. index }, spec = { mode = "applies" },
      }
    end
    return list
  end

  -- The whole server hangs up, is behind a proxy that says so, refuses the credentials, or cannot write.
  for name, where in pairs {
    lost_request = {}, unavailable = {}, too_many_requests = {}, internal_error = {},
  } do
    it(("as the server is away (%s) says nothing on its object, also when that is back"):format(name), function()
      local world = world_of "work"
      where.times = 1000000
      local heal = world.fault(name, where)
      world.apply(fifty_works())
      world.advance "10m"
      if name == "lost_request" then -- and is not well at once: each object fails once more
        world.fault("internal_error", { verb = "patch", kind = ConfigMap, times = 50 })
      end
      heal()
      world.advance "1h"
      for _, work in ipairs(world.list(Work)) do
        assert.is_truthy(work.status)
        assert.is_nil(work.status.conditions)
      end
      assert.same({}, world.events(Work))
    end)
  end

  it("for a reason that lasts is told by each of many objects, in one write each", function()
    local world = world_of "work"
    local heal = world.fault("internal_error", { verb = "patch", kind = ConfigMap, times = 1000000 })
    world.apply(fifty_works())
    world.advance "1h"
    assert.equal(50, status_writes(world))
    heal()
    world.advance "1h"
    assert.equal(100, status_writes(world))
    for _, work in ipairs(world.list(Work)) do
      assert.equal("True", work.status.conditions[1].status)
    end
  end)

  it("costs one request where the schema has no conditions, and takes nothing from the script", function()
    local world = world_of "plain"
    world.apply(object(Plain, "boom"))
    assert.equal(1, status_writes(world))
    world.advance "2h"
    assert.equal(1, status_writes(world))
    world.patch(Plain, "a", { spec = { mode = "invalid" } })
    world.expect(Plain, "a", { status = { phase = "BAD" } })
    world.patch(Plain, "a", { spec = { mode = "fine" } })
    world.expect(Plain, "a", { status = { phase = "FINE" } })
    assert.equal(3, status_writes(world))
  end)

  it("says nothing on a kind of Kubernetes' own", function()
    local world = world_of "pods"
    world.apply {
      apiVersion = "v1", kind = "Pod", metadata = { name = "a" },
      spec = { containers = { { name = "c", image = "busybox" } } },
    }
    world.advance "1h"
    assert.is_nil(condition(world, Pod, "Reconciled"))
    assert.equal(0, status_writes(world))
  end)

  it("is taken back by the controller that said it, and by no other", function()
    local world = world_of("work", "second")
    world.apply(object(Work, "second"))
    assert.matches("^second: second%.lua:%d+: the second fails$", condition(world, Work, "Reconciled").message)
    world.advance "1h"
    assert.equal("False", condition(world, Work, "Reconciled").status)
    world.patch(Work, "a", { spec = { mode = "boom" } })
    world.advance "30m"
    assert.matches("^work: ", condition(world, Work, "Reconciled").message)
    world.patch(Work, "a", { spec = { mode = "fine" } })
    world.advance "30m"
    assert.equal("True", condition(world, Work, "Reconciled").status)
  end)
end)


describe("A paused object", function()
  local PAUSED, GOES_ON = { ["moonloop.dev/paused"] = "true" }, { ["moonloop.dev/paused"] = moonloop.null }

  local function annotate(world, kind, annotations)
    world.patch(kind, "a", { metadata = { annotations = annotations } })
  end

  it("says so, changes nothing until it goes on, and then says that all is well", function()
    local world = world_of "work"
    world.apply(object(Work, "fine"))
    local before = world.get(Work, "a").status
    annotate(world, Work, PAUSED)
    local told = condition(world, Work, "Reconciled")
    assert.equal("False", told.status)
    assert.equal("Paused", told.reason)
    assert.matches("^work: the annotation moonloop.dev/paused is \"true\"", told.message)
    world.patch(Work, "a", { spec = { mode = "boom" } })
    world.advance "30m"
    world.restart()
    world.expect(Work, "a", { status = { phase = before.phase } })
    assert.equal("Paused", condition(world, Work, "Reconciled").reason)
    local events = {}
    for _, event in ipairs(world.events(Work, "a")) do
      events[#events + 1] = event.reason
    end
    assert.same({ "Paused" }, events)
    world.patch(Work, "a", { spec = { mode = "fine" } })
    annotate(world, Work, GOES_ON)
    assert.equal("True", condition(world, Work, "Reconciled").status)
  end)

  it("says so once, of two controllers that reconcile its kind", function()
    local world = world_of("work", "second")
    world.apply(object(Work, "fine"))
    annotate(world, Work, PAUSED)
    world.advance "1m"
    local before = status_writes(world)
    world.patch(Work, "a", { metadata = { labels = { any = "thing" } } })
    world.advance "1h"
    assert.equal(before, status_writes(world))
    annotate(world, Work, GOES_ON)
    world.advance "1m"
    assert.equal("True", condition(world, Work, "Reconciled").status)
  end)

  it("of a kind without conditions is left alone all the same", function()
    local world = world_of "plain"
    world.apply(object(Plain, "fine"))
    annotate(world, Plain, PAUSED)
    world.patch(Plain, "a", { spec = { mode = "invalid" } })
    world.expect(Plain, "a", { status = { phase = "FINE" } })
    annotate(world, Plain, GOES_ON)
    world.expect(Plain, "a", { status = { phase = "BAD" } })
  end)
end)
