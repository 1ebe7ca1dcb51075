-- Scripts that clean up: `finalize`, and the finalizers that the host puts on objects for it.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")
local Namespace = moonloop.kind("v1", "Namespace")
local OURS = "moonloop.dev/pages"

local function thing(name, mode, namespace)
  return {
    apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name, namespace = namespace },
    spec = { mode = mode },
  }
end


describe("A script that finalizes", function()
  local world

  before_each(function()
    world = testing.world { scripts = "spec/testing/finalize/pages.lua", crds = "spec/testing/crds" }
  end)

  local function page(name)
    return world.get(ConfigMap, name, "kube-public")
  end

  -- The notes of the Events of this reason on an object.
  local function notes(name, reason)
    local list = {}
    for _, event in ipairs(world.events(Thing, name)) do
      list[#list + 1] = event.reason == reason and event.note or nil
    end
    return list
  end

  it("has its finalizer on what it wrote for, before it wrote", function()
    world.apply(thing("a", "x"))
    assert.same({ OURS }, world.get(Thing, "a").metadata.finalizers)
    local writes = {}
    for _, request in ipairs(world.requests()) do
      writes[#writes + 1] = (request.verb == "patch" or request.verb == "create")
        and not request.path:find("/events", 1, true) and request.path or nil
    end
    assert.same({
      "/apis/example.com/v1/namespaces/default/things/a",
      "/api/v1/namespaces/kube-public/configmaps",
      "/apis/example.com/v1/namespaces/default/things/a/status",
    }, writes)
  end)

  it("has none on what it wrote nothing for", function()
    world.apply(thing("a", "nothing"))
    assert.is_nil(world.get(Thing, "a").metadata.finalizers)
    world.delete(Thing, "a")
    assert.is_nil(world.get(Thing, "a"))
  end)

  it("cleans up before the object goes", function()
    world.apply(thing("a", "x"))
    assert.is_table(page "default-a")
    world.delete(Thing, "a")
    assert.is_nil(page "default-a")
    assert.is_nil(world.get(Thing, "a"))
    world.advance "1s"
    local told = notes("a", "SuccessfulDelete")
    assert.equal(1, #told)
    assert.matches("^ConfigMap kube%-public/default%-a: ctx.delete at pages.lua:57 %(revision %x+%)$", told[1])
  end)

  it("cleans up what was deleted before a restart", function()
    world.apply(thing("a", "x"))
    local open = world.fault("unavailable", { verb = "patch" })
    world.delete(Thing, "a")
    assert.is_table(world.get(Thing, "a"))
    open()
    world.restart()
    assert.is_nil(world.get(Thing, "a"))
  end)

  it("leaves the finalizers of others, in their order", function()
    world.apply(thing("a", "x"))
    world.patch(Thing, "a", { metadata = { finalizers = { "a.example.com/x", OURS, "b.example.com/x" } } })
    world.delete(Thing, "a")
    assert.same({ "a.example.com/x", "b.example.com/x" }, world.get(Thing, "a").metadata.finalizers)
    assert.is_nil(page "default-a")
    local count = #world.requests "patch"
    world.patch(Thing, "a", { metadata = { finalizers = { "b.example.com/x" } } })
    world.advance "1h"
    assert.equal(count, #world.requests "patch")
    world.patch(Thing, "a", { metadata = { finalizers = moonloop.null } })
    assert.is_nil(world.get(Thing, "a"))
  end)

  it("keeps the object, and says so, as long as it returns a table", function()
    world.apply(thing("a", "later"))
    world.delete(Thing, "a")
    world.advance "1h"
    world.expect(Thing, "a", { metadata = { finalizers = { OURS } }, status = { phase = "Going" } })
    assert.equal(world.now(), world.get(Thing, "a").status.at)
    assert.same({ "finalize asked to be called again; moonloop.dev/pages stays until it returns nothing" },
      notes("a", "Finalizing"))
    world.patch(Thing, "a", { spec = { mode = "x" } })
    assert.is_nil(world.get(Thing, "a"))
  end)

  -- Returns the condition Reconciled of an object as text.
  local function reconciled(name)
    for _, condition in ipairs(world.get(Thing, name).status.conditions or {}) do
      if condition.type == "Reconciled" then
        return ("%s %s %s"):format(condition.status, condition.reason, condition.message)
      end
    end
  end

  it("has a condition that says why an object stays, written once", function()
    world.apply(thing("a", "raise"))
    world.delete(Thing, "a")
    world.advance "1m"
    assert.matches("^False FinalizeFailed pages: pages.lua:16: no way to clean up", reconciled "a")
    world.patch(Thing, "a", { spec = { mode = "wait" } })
    assert.equal("False Finalizing pages: finalize asked to be called again; moonloop.dev/pages stays until it "
      .. "returns nothing", reconciled "a")
    local count = #world.requests("patch", "/things/")
    world.advance "1h"
    assert.equal(count, #world.requests("patch", "/things/"))
    world.patch(Thing, "a", { spec = { mode = "x" } })
    assert.is_nil(world.get(Thing, "a"))
  end)

  it("keeps the object, and says so, when it raises", function()
    world.apply(thing("a", "raise"))
    world.delete(Thing, "a")
    world.advance "1m"
    assert.same({ OURS }, world.get(Thing, "a").metadata.finalizers)
    assert.matches("^pages.lua:16: no way to clean up", notes("a", "FinalizeFailed")[1])
    world.patch(Thing, "a", { spec = { mode = "x" } })
    assert.is_nil(world.get(Thing, "a"))
  end)

  it("is ended when it loops, and the object stays", function()
    world.apply(thing("a", "loop"))
    world.delete(Thing, "a")
    world.advance "1s"
    assert.same({ OURS }, world.get(Thing, "a").metadata.finalizers)
    assert.matches("used more than", notes("a", "FinalizeFailed")[1])
  end)

  it("works while its namespace is being deleted", function()
    world.apply { apiVersion = "v1", kind = "Namespace", metadata = { name = "n" } }
    world.apply { thing("a", "x", "n"), thing("b", "x", "n"), thing("c", "nothing", "n") }
    world.delete(Namespace, "n")
    world.advance "1m"
    assert.is_nil(world.get(Namespace, "n"))
    assert.is_nil(page "n-a")
    assert.is_nil(page "n-b")
  end)

  it("is told why it can make nothing in a namespace that is being deleted", function()
    world.apply { apiVersion = "v1", kind = "Namespace", metadata = { name = "n" } }
    world.apply(thing("a", "make", "n"))
    world.delete(Namespace, "n")
    world.advance "1m"
    assert.same({ OURS }, world.get(Thing, "a", "n").metadata.finalizers)
    assert.matches("because it is being terminated", world.get(Thing, "a", "n").status.why)
    world.patch(Thing, "a", { spec = { mode = "x" } }, nil, "n")
    world.advance "1m"
    assert.is_nil(world.get(Namespace, "n"))
  end)

  it("may make what goes with the object", function()
    world.apply(thing("a", "make"))
    world.delete(Thing, "a")
    world.advance "1m"
    assert.is_nil(world.get(Thing, "a"))
    assert.is_nil(world.get(Secret, "last"))
  end)
end)
