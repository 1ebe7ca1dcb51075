local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local At = moonloop.kind("cnat.programming-kubernetes.info/v1alpha1", "At")
local Pod = moonloop.kind("v1", "Pod")

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

  local function phase(name)
    return world.get(At, name).status.phase
  end

  before_each(function()
    world = testing.world { controller = require "cnat", now = "2026-07-03T10:00:00Z" }
  end)

  it("waits for the instant without a pod", function()
    world.apply(at("a", "2026-07-03T10:05:00Z"))
    assert.equal("PENDING", phase "a")
    world.advance "4m59s"
    assert.equal("PENDING", phase "a")
    assert.is_nil(world.get(Pod, "a-pod"))
  end)

  it("runs the pod at the instant and is done when the pod is", function()
    world.apply(at("a", "2026-07-03T10:05:00Z"))
    world.advance "5m"
    assert.equal("RUNNING", phase "a")
    world.finish_pod "a-pod"
    assert.equal("DONE", phase "a")
  end)

  it("is done as well when the pod fails", function()
    world.apply(at("a", "2026-07-03T09:00:00Z"))
    world.finish_pod("a-pod", "Failed")
    assert.equal("DONE", phase "a")
  end)

  it("makes the pod of the book", function()
    world.apply(at("a", "2026-07-03T09:00:00Z", "echo  hello world"))
    local pod = world.get(Pod, "a-pod")
    assert.same({ app = "a" }, pod.metadata.labels)
    assert.equal("OnFailure", pod.spec.restartPolicy)
    local container = pod.spec.containers[1]
    assert.same({ "busybox", "busybox" }, { container.name, container.image })
    assert.equal("echo|hello|world", table.concat(container.command, "|"))
    assert.equal(world.get(At, "a").metadata.uid, pod.metadata.ownerReferences[1].uid)
  end)

  it("makes one pod, however often it runs", function()
    world.apply(at("a", "2026-07-03T09:00:00Z"))
    world.settle()
    world.advance "1h"
    assert.equal(1, #world.list(Pod))
  end)

  it("makes a deleted pod again while it runs, and never after the end", function()
    world.apply(at("a", "2026-07-03T09:00:00Z"))
    world.delete(Pod, "a-pod")
    assert.truthy(world.get(Pod, "a-pod"))
    world.finish_pod "a-pod"
    world.delete(Pod, "a-pod")
    world.advance "1h"
    assert.is_nil(world.get(Pod, "a-pod"))
    assert.equal("DONE", phase "a")
  end)

  for _, schedule in ipairs {
    "tomorrow", "", "2026-07-03", "2026-13-03T10:00:00Z", "2026-02-29T10:00:00Z",
    "2026-07-03T24:00:00Z", "2026-07-03T10:00:00", "2026-07-03T10:00:00+01:00", " 2026-07-03T10:00:00Z",
  } do
    it(("says that '%s' is no schedule, and waits for another"):format(schedule), function()
      world.apply(at("bad", schedule))
      world.apply(at("good", "2026-07-03T09:00:00Z"))
      assert.equal("Invalid", world.events[1].reason)
      assert.truthy(world.events[1].note:find("spec.schedule: ", 1, true))
      assert.is_nil(phase "bad")
      assert.equal("RUNNING", phase "good")
      world.apply(at("bad", "2026-07-03T09:00:00Z"))
      assert.equal("RUNNING", phase "bad")
    end)
  end
end)
