-- Returned children that the object cannot own, in a world: tracked_children.lua beside this file.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local ClusterRole = moonloop.kind("rbac.authorization.k8s.io/v1", "ClusterRole")
local Namespace = moonloop.kind("v1", "Namespace")

local INVENTORY = "children.moonloop.dev/thing"

local function thing(mode, name)
  return {
    apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name or "a" }, spec = { mode = mode },
  }
end


describe("Children that cannot be owned", function()
  local world

  before_each(function()
    world = testing.world { crds = "spec/testing/crds" }
    world.apply { apiVersion = "v1", kind = Namespace.kind, metadata = { name = "elsewhere" } }
  end)

  local function inventory()
    return (world.get(Thing, "a").metadata.annotations or {})[INVENTORY]
  end

  it("are listed on the object before they are made, and say whose they are", function()
    world.apply(thing "1 red")
    assert.equal("v1 ConfigMap elsewhere/a-1,rbac.authorization.k8s.io/v1 ClusterRole a", inventory())
    assert.same({ "moonloop.dev/thing" }, world.get(Thing, "a").metadata.finalizers)
    local map = world.get(ConfigMap, "a-1", "elsewhere")
    local uid = world.get(Thing, "a").metadata.uid
    assert.equal("thing default/a " .. uid, map.metadata.annotations["moonloop.dev/owner"])
    assert.is_nil(map.metadata.ownerReferences)
    world.expect(ConfigMap, "a", { metadata = { ownerReferences = { { name = "a" } } } })
    world.expect(Thing, "a", { status = { size = 1 } })
    local paths = {}
    for _, request in ipairs(world.requests "patch") do
      paths[#paths + 1] = request.path:match "[^/]+/[^/]+/[^/]+$"
    end
    assert.same({ "default/things/a", "default/configmaps/a", "elsewhere/configmaps/a-1", "v1/clusterroles/a",
      "things/a/status" }, paths)
  end)

  it("are told on the object when they go, and why", function()
    local function told()
      local notes = {}
      world.advance "1s"
      for _, event in ipairs(world.events(Thing, "a")) do
        notes[#notes + 1] = event.reason == "SuccessfulDelete" and event.note:match "^(.*) %(revision %x+%)$" or nil
      end
      table.sort(notes)
      return notes
    end
    world.apply(thing "2 red")
    world.apply(thing "1 red")
    local pruned = "ConfigMap elsewhere/a-2: no longer returned by tracked_children.lua:"
    assert.equal(pruned, told()[1]:match "^(.*:)%d+$")
    world.delete(Thing, "a")
    assert.is_nil(world.get(Thing, "a"))
    local notes = told()
    assert.equal("ClusterRole a: the object that it was made for is being deleted", notes[1])
    assert.equal("ConfigMap elsewhere/a-1: the object that it was made for is being deleted", notes[2])
  end)

  it("may carry any text as the name of their owner", function()
    local long = ("x"):rep(70000)
    for i, owner in ipairs { "default/" .. long, long .. "/a", "default/a/" .. long, "default/", "/a", "A_B" } do
      world.apply {
        apiVersion = ConfigMap.apiVersion, kind = ConfigMap.kind,
        metadata = {
          name = "stray-" .. i, namespace = "elsewhere",
          annotations = { ["moonloop.dev/owner"] = "thing " .. owner .. " u1" },
        },
      }
    end
    world.apply(thing "1 red")
    world.expect(Thing, "a", { status = { size = 1 } })
  end)

  it("come back, and are put right", function()
    world.apply(thing "1 red")
    world.delete(ClusterRole, "a")
    world.expect(ClusterRole, "a", {})
    world.patch(ConfigMap, "a-1", { data = { text = "mine" } }, nil, "elsewhere")
    world.expect(ConfigMap, "a-1", { data = { text = "red" } }, "elsewhere")
  end)

  it("come back when the last run did not get as far as to look for them", function()
    world.apply(thing "1 red")
    world.apply(thing "1 later")
    world.advance "2m"
    world.expect(ConfigMap, "a-1", { data = { text = "red" } }, "elsewhere")
    world.delete(ClusterRole, "a")
    world.expect(ClusterRole, "a", {})
    world.expect(ConfigMap, "a-1", { data = { text = "later" } }, "elsewhere")
  end)

  it("go when they are not returned any more, and leave the list", function()
    world.apply(thing "3 red")
    world.apply(thing "1 red")
    world.expect(ConfigMap, "a-3", false, "elsewhere")
    assert.equal("v1 ConfigMap elsewhere/a-1,rbac.authorization.k8s.io/v1 ClusterRole a", inventory())
    world.apply(thing "0 red")
    assert.is_nil(world.get(ClusterRole, "a"))
    assert.is_nil(inventory())
    world.expect(Thing, "a", { status = { size = 0 } })
  end)

  it("go with the object, which waits for them", function()
    world.apply(thing "2 red")
    world.patch(ConfigMap, "a-1", { metadata = { finalizers = { "example.com/hold" } } }, nil, "elsewhere")
    world.delete(Thing, "a")
    assert.is_nil(world.get(ConfigMap, "a-2", "elsewhere"))
    assert.is_nil(world.get(ClusterRole, "a"))
    world.expect(Thing, "a", {})
    world.patch(ConfigMap, "a-1", { metadata = { finalizers = moonloop.null } }, nil, "elsewhere")
    world.expect(ConfigMap, "a-1", false, "elsewhere")
    world.expect(Thing, "a", false)
  end)

  it("go with the object, also when the operator was not there", function()
    world.apply(thing "2 red")
    world.restart()
    world.delete(Thing, "a")
    assert.same({}, world.list(ClusterRole, "x=y"))
    world.expect(ConfigMap, "a-1", false, "elsewhere")
    world.expect(Thing, "a", false)
  end)

  it("are not taken from others, and those are not deleted", function()
    local theirs = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a-1", namespace = "elsewhere" } }
    theirs.data = { text = "theirs" }
    world.apply(theirs)
    world.apply(thing "1 red")
    world.advance "1s"
    world.expect(ConfigMap, "a-1", { data = { text = "theirs" } }, "elsewhere")
    local want = "ConfigMap elsewhere/a-1 exists and is controlled by nothing"
    assert.truthy(world.events(Thing, "a")[1].note:find(want, 1, true), world.events(Thing, "a")[1].note)
    world.delete(Thing, "a")
    world.expect(Thing, "a", false)
    world.expect(ConfigMap, "a-1", { data = { text = "theirs" } }, "elsewhere")
  end)

  it("are not deleted for what somebody writes into the list", function()
    world.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "precious", namespace = "elsewhere" } }
    world.apply(thing "1 red")
    local garbage = inventory() .. ",v1 ConfigMap elsewhere/precious,v1 ConfigMap,, ,v1 Secret elsewhere/s"
    world.patch(Thing, "a", { metadata = { annotations = { [INVENTORY] = garbage .. (",x"):rep(50000) } } })
    world.expect(ConfigMap, "precious", {}, "elsewhere")
    assert.equal("v1 ConfigMap elsewhere/a-1,rbac.authorization.k8s.io/v1 ClusterRole a,v1 Secret elsewhere/s",
      inventory())
    world.patch(Thing, "a", { metadata = { annotations = { [INVENTORY] = garbage .. (",x y z"):rep(20000) } } })
    world.delete(Thing, "a")
    world.expect(Thing, "a", false)
    assert.is_nil(world.get(ClusterRole, "a"))
    world.expect(ConfigMap, "precious", {}, "elsewhere")
    world.advance "1s"
    local last = world.events(Thing, "a")
    assert.equal("ChildrenLeft", last[#last].reason)
  end)

  it("of one object are not those of another of its name", function()
    world.apply(thing "1 red")
    local other = thing "1 red"
    other.metadata.namespace = "elsewhere"
    world.apply(other)
    world.advance "1s"
    local uid = world.get(Thing, "a").metadata.uid
    assert.equal("thing default/a " .. uid, world.get(ClusterRole, "a").metadata.annotations["moonloop.dev/owner"])
    local note = world.events(Thing, "a")[1].note
    assert.truthy(note:find("ClusterRole a exists and is controlled by thing default/a " .. uid, 1, true), note)
  end)
end)
