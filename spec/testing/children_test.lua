-- Children that a script returns, in a world: children.lua beside this file.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")

local function thing(mode, name)
  return {
    apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name or "a" }, spec = { mode = mode },
  }
end


describe("Returned children", function()
  local world

  before_each(function()
    world = testing.world { crds = "spec/testing/crds" }
  end)

  local function names(kind)
    local list = {}
    for _, object in ipairs(world.list(kind)) do
      if object.metadata.name:find "^a%-%d" then
        list[#list + 1] = object.metadata.name
      end
    end
    return list
  end

  it("are made, with the object as their controller, and then the status is written", function()
    world.apply(thing "2 red")
    world.expect(ConfigMap, "a-1", { data = { text = "red" } })
    local owners = { { kind = "Thing", name = "a", controller = true } }
    world.expect(Secret, "a-2", { metadata = { ownerReferences = owners } })
    world.expect(Thing, "a", { status = { size = 2, text = "red" } })
  end)

  it("cost nothing while nothing changes", function()
    world.apply(thing "2 red")
    local before = #world.requests()
    world.patch(Thing, "a", { metadata = { labels = { any = "thing" } } })
    assert.equal(before, #world.requests())
  end)

  it("go when they are not returned any more: the last kind first, and of a kind the last by name", function()
    world.apply(thing "3 red")
    world.apply(thing "1 red")
    assert.same({ "a-1" }, names(ConfigMap))
    assert.same({ "a-1" }, names(Secret))
    local order = {}
    for _, request in ipairs(world.requests "delete") do
      order[#order + 1] = request.path:match "[^/]+/[^/]+$"
    end
    assert.same({ "secrets/a-3", "secrets/a-2", "configmaps/a-3", "configmaps/a-2" }, order)
    world.apply(thing "0 red")
    assert.same({}, names(ConfigMap))
  end)

  it("are told on the object when they go, with the line", function()
    world.apply(thing "2 red")
    world.apply(thing "1 red")
    world.advance "1s"
    local notes = {}
    for _, event in ipairs(world.events(Thing, "a")) do
      assert.equal("SuccessfulDelete", event.reason)
      notes[#notes + 1] = event.note:gsub("%(revision %x%x%x%x%x%x%x%x%)", "(revision)")
    end
    table.sort(notes)
    assert.same({
      "ConfigMap default/a-2: no longer returned by children.lua:37 (revision)",
      "Secret default/a-2: no longer returned by children.lua:37 (revision)",
    }, notes)
  end)

  it("are made again when somebody deletes them, and put right when somebody changes them", function()
    world.apply(thing "1 red")
    world.delete(ConfigMap, "a-1")
    world.expect(ConfigMap, "a-1", { data = { text = "red" } })
    world.patch(ConfigMap, "a-1", { data = { text = "mine" } })
    world.expect(ConfigMap, "a-1", { data = { text = "red" } })
  end)

  it("do not take over what another has, by name, and nothing is deleted meanwhile", function()
    world.apply(thing "2 red")
    world.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "b-1" }, data = { text = "theirs" } }
    world.apply(thing("1 red", "b"))
    world.advance "1s"
    world.expect(ConfigMap, "b-1", { data = { text = "theirs" } })
    assert.is_nil(world.get(ConfigMap, "b-1").metadata.ownerReferences)
    world.expect(Secret, "b-1", { immutable = true })
    assert.is_nil(world.get(Thing, "b").status.size)
    local event = world.events(Thing, "b")[1]
    assert.equal("ReconcileFailed", event.reason)
    local want = "ConfigMap default/b-1: AlreadyExists: ConfigMap default/b-1 exists and is controlled by nothing"
    assert.truthy(event.note:find(want, 1, true), event.note)
    world.delete(ConfigMap, "b-1")
    world.advance "1m"
    world.expect(Thing, "b", { status = { size = 1 } })
  end)

  it("that cannot be changed are deleted and made again, one after the other", function()
    world.apply(thing "1 red")
    local old = world.get(Secret, "a-1").metadata.uid
    world.apply(thing "1 blue")
    world.expect(Secret, "a-1", { data = { text = "Ymx1ZQ==" } })
    assert.not_equal(old, world.get(Secret, "a-1").metadata.uid)
    world.expect(ConfigMap, "a-1", { data = { text = "blue" } })
    world.expect(Thing, "a", { status = { text = "blue" } })
    assert.equal(1, #world.requests("delete", "/secrets/a-1"))
    world.advance "1s"
    local event = world.events(Thing, "a")[1]
    assert.equal("SuccessfulDelete", event.reason)
    assert.matches("^Secret default/a%-1: made again, as the server refuses the change: .*immutable", event.note)
  end)

  it("leave alone what the same run got otherwise, and what ctx.once made for ever", function()
    local function generated()
      local count = 0
      for _, object in ipairs(world.list(ConfigMap)) do
        count = count + (object.metadata.name:find "^once%-" and 1 or 0)
      end
      return count
    end
    world.apply(thing "0 once")
    assert.equal(1, generated())
    world.expect(Secret, "values", { data = { password = "c2VjcmV0" } })
    world.apply(thing "0 red")
    assert.equal(0, generated())
    world.expect(Secret, "values", { data = { password = "c2VjcmV0" } })
  end)

  it("wait for one that is leaving", function()
    world.apply(thing "1 red")
    world.patch(Secret, "a-1", { metadata = { finalizers = { "example.com/hold" } } })
    world.apply(thing "1 blue")
    world.expect(Secret, "a-1", { data = { text = "cmVk" } })
    world.advance "1h"
    assert.equal(1, #world.requests("delete", "/secrets/a-1"))
    world.patch(Secret, "a-1", { metadata = { finalizers = moonloop.null } })
    world.expect(Secret, "a-1", { data = { text = "Ymx1ZQ==" } })
  end)

  it("that are many take several runs", function()
    world.apply(thing "150 red")
    assert.equal(150, #names(Secret))
    world.expect(Thing, "a", { status = { size = 150 } })
    world.apply(thing "0 red")
    assert.equal(0, #names(Secret))
  end)
end)


describe("A generated name", function()
  it("is of one object, through lost replies, stale caches and restarts", function()
    for _, fault in ipairs { "lost_reply", "timeout", "lost_request" } do
      local world = testing.world { crds = "spec/testing/crds" }
      world.fault(fault, { verb = "create", kind = ConfigMap, times = 1 })
      world.apply(thing "0 once")
      world.advance "5m"
      world.restart()
      world.patch(Thing, "a", { spec = { mode = "1 once" } })
      local count = 0
      for _, object in ipairs(world.list(ConfigMap)) do
        count = count + (object.metadata.name:find "^once%-" and 1 or 0)
      end
      assert.equal(1, count, fault)
    end
  end)
end)
