-- Which changes call a script: `when`, and the functions of `watches`.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function world_of(script)
  return testing.world { scripts = ("spec/testing/changes/%s.lua"):format(script), crds = "spec/testing/crds" }
end


local function thing(name, mode)
  return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
end


-- How often the script was called for a Thing.
local function calls(world, name)
  local count = 0
  for _, map in ipairs(world.list(ConfigMap)) do
    count = count + (map.metadata.name:find(("called-%s-"):format(name), 1, true) == 1 and 1 or 0)
  end
  return count
end


describe("A script that is called for some parts of its objects", function()
  local world

  before_each(function()
    world = world_of "parts"
    world.apply(thing("a", "x"))
  end)

  it("is called when an object comes, and not for its own status", function()
    assert.equal(1, calls(world, "a"))
    world.expect(Thing, "a", { status = { calls = 1 } })
  end)

  it("is called for changes of these parts", function()
    world.apply(thing("a", "y"))
    assert.equal(2, calls(world, "a"))
    world.patch(Thing, "a", { metadata = { labels = { b = "c" } } })
    assert.equal(3, calls(world, "a"))
  end)

  it("is not called for changes of others", function()
    world.patch(Thing, "a", { metadata = { annotations = { b = "c" }, finalizers = { "example.com/x" } } })
    world.patch(Thing, "a", { status = { phase = "Odd" } }, "status")
    world.advance "1h"
    assert.equal(1, calls(world, "a"))
  end)

  it("is called for an object that was deleted and made anew", function()
    world.delete(Thing, "a")
    world.apply(thing("a", "x"))
    assert.equal(2, calls(world, "a"))
  end)

  it("looks at everything after a start, whatever changed", function()
    world.patch(Thing, "a", { metadata = { annotations = { b = "c" } } })
    world.restart()
    assert.equal(2, calls(world, "a"))
  end)
end)


describe("A script that judges changes itself", function()
  local world

  before_each(function()
    world = world_of "judged"
    world.apply(thing("a", "x"))
  end)

  local function warnings()
    local notes = {}
    world.advance "1s"
    for _, event in ipairs(world.events(Thing, "a")) do
      notes[#notes + 1] = ("%s: %s"):format(event.reason, event.note)
    end
    return table.concat(notes, "\n")
  end

  it("is called when it says so, and only then", function()
    world.apply(thing("a", "y"))
    assert.equal(1, calls(world, "a"))
    world.patch(Thing, "a", { status = { phase = "Odd" } }, "status")
    assert.equal(2, calls(world, "a"))
    assert.equal("", warnings())
  end)

  for how, note in pairs {
    raise = "^WatchFailed: judged%.lua:10: cannot judge this$",
    nothing = "^WatchFailed: judged%.lua:7: when: expected true or false for this change, got nothing$",
    ["for ever"] = "^WatchFailed: judged%.lua:14: used more than %d+ ms of CPU time without waiting$",
  } do
    it(("is called all the same when its function goes wrong: %s"):format(how), function()
      world.patch(Thing, "a", { metadata = { annotations = { how = how } } })
      assert.equal(2, calls(world, "a"))
      assert.matches(note, warnings())
    end)
  end
end)


describe("A script that watches others", function()
  local world

  before_each(function()
    world = world_of "mapped"
    world.apply { thing("a"), thing("b") }
  end)

  local function secret(name, whom)
    return { apiVersion = "v1", kind = "Secret", metadata = { name = name, labels = { ["for"] = whom } } }
  end

  it("is called for whom a change concerns now, and for whom it did before", function()
    world.apply(secret("s", "a"))
    assert.same({ 2, 1 }, { calls(world, "a"), calls(world, "b") })
    world.apply(secret("s", "b"))
    assert.same({ 3, 2 }, { calls(world, "a"), calls(world, "b") })
    world.delete(Secret, "s")
    assert.same({ 3, 3 }, { calls(world, "a"), calls(world, "b") })
  end)

  it("is not called for changes that do not count", function()
    world.apply(secret("s", "a"))
    world.patch(Secret, "s", { data = { x = "eA==" } })
    assert.equal(2, calls(world, "a"))
  end)

  it("is told of what it cannot map, and goes on with the rest", function()
    world.apply { secret("bad", "raise"), secret("much", "many"), secret("s", "a") }
    assert.same({ 2, 1 }, { calls(world, "a"), calls(world, "b") })
    world.advance "1s"
    local notes = {}
    for _, event in ipairs(world.events(Secret)) do
      notes[event.name] = ("%s: %s"):format(event.reason, event.note)
    end
    assert.same({
      bad = "WatchFailed: mapped.lua:11: cannot map this",
      much = "WatchFailed: mapped.lua:5: the watch function for Secret returned 10001 names; at most 10000",
    }, notes)
  end)
end)
