local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local At = moonloop.kind("cnat.programming-kubernetes.info/v1alpha1", "At")
local Pod = moonloop.kind("v1", "Pod")

local PAST, DUE = "2026-07-03T09:00:00Z", "2026-07-03T10:05:00Z"

local function at(name, schedule, command)
  return {
    apiVersion = At.apiVersion,
    kind = At.kind,
    metadata = { name = name },
    spec = { schedule = schedule, command = command or "echo YAY" },
  }
end


describe("cnat", function()
  local world

  local function expect_phase(name, phase)
    world.expect(At, name, { status = { phase = phase } })
  end

  local function pods_created()
    local count = 0
    for _, request in ipairs(world.requests("create", "/pods")) do
      count = count + (request.code == 201 and 1 or 0)
    end
    return count
  end

  before_each(function()
    world = testing.world { now = "2026-07-03T10:00:00Z" }
  end)

  it("waits for the instant without a pod", function()
    world.apply(at("a", DUE))
    expect_phase("a", "PENDING")
    world.advance "4m59s"
    expect_phase("a", "PENDING")
    world.expect(Pod, "a-pod", false)
  end)

  it("runs the pod at the instant and is done when the pod is", function()
    world.apply(at("a", DUE))
    world.advance "5m"
    expect_phase("a", "RUNNING")
    world.finish_pod "a-pod"
    expect_phase("a", "DONE")
  end)

  it("is done as well when the pod fails for good", function()
    world.apply(at("a", PAST))
    world.patch(Pod, "a-pod", { status = { phase = "Failed" } }, "status")
    expect_phase("a", "DONE")
  end)

  it("makes the pod of the book", function()
    world.apply(at("a", PAST, "echo  hello world"))
    world.expect(Pod, "a-pod", {
      metadata = { labels = { app = "a" }, ownerReferences = { { kind = "At", name = "a", controller = true } } },
      spec = {
        restartPolicy = "OnFailure",
        containers = { { name = "busybox", image = "busybox", command = { "echo", "hello", "world" } } },
      },
    })
  end)

  it("makes a deleted pod again while it runs, and never after the end", function()
    world.apply(at("a", PAST))
    local first = world.get(Pod, "a-pod").metadata.uid
    world.delete(Pod, "a-pod")
    assert.are_not.equal(first, world.get(Pod, "a-pod").metadata.uid)
    world.finish_pod "a-pod"
    world.delete(Pod, "a-pod")
    world.advance "1h"
    world.expect(Pod, "a-pod", false)
    expect_phase("a", "DONE")
  end)

  it("takes its pod along when it is deleted", function()
    world.apply(at("a", PAST))
    world.delete(At, "a")
    world.expect(Pod, "a-pod", false)
  end)

  it("follows a schedule that is changed", function()
    world.apply(at("a", DUE))
    world.apply(at("a", "2026-07-03T11:00:00Z"))
    world.advance "5m"
    expect_phase("a", "PENDING")
    world.advance "55m"
    expect_phase("a", "RUNNING")
  end)

  for _, schedule in ipairs {
    "tomorrow", "", "2026-07-03", "2026-13-03T10:00:00Z", "2026-02-29T10:00:00Z",
    "2026-07-03T24:00:00Z", "2026-07-03T10:00:00", "2026-07-03T10:00:00+01:00", " 2026-07-03T10:00:00Z",
  } do
    it(("says that '%s' is no schedule, and waits for another"):format(schedule), function()
      world.apply { at("bad", schedule), at("good", PAST) }
      world.advance "1s"
      local event = world.events(At, "bad")[1]
      assert.same({ "Warning", "Invalid" }, { event.type, event.reason })
      assert.truthy(event.note:find("spec.schedule: ", 1, true), event.note)
      world.expect(Pod, "bad-pod", false)
      expect_phase("good", "RUNNING")
      world.apply(at("bad", PAST))
      expect_phase("bad", "RUNNING")
    end)
  end

  for _, fault in ipairs {
    { "conflict", { verb = "patch" } },
    { "unavailable", { verb = "create", kind = Pod } },
    { "lost_request", { verb = "create", kind = Pod } },
    { "lost_reply", { verb = "create", kind = Pod } },
    { "timeout", { verb = "create", kind = Pod } },
  } do
    it(("makes one pod through the fault %s"):format(fault[1]), function()
      world.fault(fault[1], fault[2])
      world.apply(at("a", DUE))
      world.advance "10m"
      expect_phase("a", "RUNNING")
      world.finish_pod "a-pod"
      expect_phase("a", "DONE")
      assert.equal(1, pods_created())
    end)
  end

  it("makes one pod when its cache stands still", function()
    world.apply(at("a", DUE))
    local heal = world.fault "stale_cache"
    world.advance "10m"
    heal()
    world.advance "1m"
    expect_phase("a", "RUNNING")
    assert.equal(1, pods_created())
  end)

  it("makes one pod when its host is killed on the way", function()
    world.apply(at("a", DUE))
    world.restart()
    world.advance "5m"
    world.restart()
    world.finish_pod "a-pod"
    world.restart()
    world.advance "1h"
    expect_phase("a", "DONE")
    assert.equal(1, pods_created())
  end)
end)
